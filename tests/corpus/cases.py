"""Outputs in the formats of libraries and hand-written scripts, each with all metrics that may be read from it.

Texts and numbers are our own. A step of None means that the output does not show one.
"""

# ruff: noqa: E501 - lines as they are printed
from __future__ import annotations

from typing import NamedTuple

Series = dict[str, list[tuple[int | None, float]]]


class Case(NamedTuple):
    name: str
    text: str
    metrics: Series = {}


CASES = [
    Case(
        "timm",
        "Train: 0 [   0/390 (  0%)]  Loss: 4.612 (4.61)  Time: 1.902s,   67.30/s  (1.902s,   67.30/s)  LR: 1.000e-05  Data: 0.812 (0.812)\n"
        "Train: 0 [  50/390 ( 13%)]  Loss: 4.598 (4.60)  Time: 0.201s,  636.82/s  (0.236s,  542.37/s)  LR: 1.000e-05  Data: 0.011 (0.028)\n"
        "Test: [   0/78]  Time: 0.911 (0.911)  Loss:   4.401 ( 4.401)  Acc@1:   3.906 (  3.906)  Acc@5:  12.500 ( 12.500)\n"
        "Test: [  78/78]  Time: 0.101 (0.141)  Loss:   4.388 ( 4.392)  Acc@1:   5.000 (  3.810)  Acc@5:  15.000 ( 13.210)\n"
        "Current checkpoints:\n ('./output/train/checkpoint-0.pth.tar', 3.81)\n\n"
        "*** Best metric: 3.81 (epoch 0)\n",
        {
            "train_loss": [(None, 4.612), (None, 4.598)],
            "test_loss": [(None, 4.401), (None, 4.388)],
            "test_acc_1": [(None, 3.906), (None, 5.0)],
            "test_acc_5": [(None, 12.5), (None, 15.0)],
        },
    ),
    Case(
        "accelerate with a postfix",
        "\rSteps:   0%|          | 0/300 [00:00<?, ?it/s]"
        "\rSteps:   0%|          | 1/300 [00:02<12:03,  2.42s/it, lr=0.0001, step_loss=0.212]"
        "\rSteps:   1%|          | 2/300 [00:03<08:10,  1.65s/it, lr=0.0001, step_loss=0.187]"
        "\rSteps:   1%|1         | 3/300 [00:04<06:55,  1.40s/it, lr=0.0001, step_loss=0.15]\n",
        {"step_loss": [(1, 0.212), (2, 0.187), (3, 0.15)]},
    ),
    Case(
        "torchtune",
        "INFO:torchtune.utils._logging:Memory stats after model init:\n"
        "\tGPU peak memory active: 6.21 GiB\n\tGPU peak memory alloc: 6.21 GiB\n"
        "  0%|          | 0/809 [00:00<?, ?it/s]\r1|1|Loss: 1.9051:   0%|          | 0/809 [00:03<?, ?it/s]"
        "\r1|1|Loss: 1.9051:   0%|          | 1/809 [00:03<48:10,  3.58s/it]"
        "\r1|2|Loss: 1.7342:   0%|          | 2/809 [00:06<45:33,  3.39s/it]\n",
        {"loss": [(1, 1.9051), (2, 1.7342)]},
    ),
    Case(
        "flax with a table of parameters",
        "+---------------------+-----------------+--------+----------+--------+\n"
        "| Name                | Shape           | Size   | Mean     | Std    |\n"
        "+---------------------+-----------------+--------+----------+--------+\n"
        "| Dense_0/bias        | (256,)          | 256    | 0.0      | 0.0    |\n"
        "| Dense_0/kernel      | (3136, 256)     | 802816 | 3.12e-05 | 0.0179 |\n"
        "+---------------------+-----------------+--------+----------+--------+\nTotal: 803,072\n"
        "epoch:  1, train_loss: 0.2311, train_accuracy: 93.02, test_loss: 0.0709, test_accuracy: 97.71\n"
        "epoch:  2, train_loss: 0.0622, train_accuracy: 98.07, test_loss: 0.0489, test_accuracy: 98.40\n",
        {
            "train_loss": [(1, 0.2311), (2, 0.0622)],
            "train_accuracy": [(1, 93.02), (2, 98.07)],
            "test_loss": [(1, 0.0709), (2, 0.0489)],
            "test_accuracy": [(1, 97.71), (2, 98.40)],
        },
    ),
    Case(
        "tianshou",
        "Epoch #1: 1001it [00:02, 412.90it/s, env_step=1000, gradient_step=100, len=12, loss=0.911, n/ep=8, n/st=100, rew=12.50]\n"
        "Epoch #1: test_reward: 31.200000 ± 4.100000, best_reward: 31.200000 ± 4.100000 in #1\n"
        "Epoch #2: 1001it [00:02, 401.22it/s, env_step=2000, gradient_step=200, len=44, loss=0.402, n/ep=3, n/st=100, rew=44.00]\n"
        "Epoch #2: test_reward: 75.000000 ± 9.000000, best_reward: 75.000000 ± 9.000000 in #2\n",
        {
            "loss": [(1000, 0.911), (2000, 0.402)],
            "rew": [(1000, 12.5), (2000, 44.0)],
            "test_reward": [(1, 31.2), (2, 75.0)],
            "best_reward": [(1, 31.2), (2, 75.0)],
        },
    ),
    Case(
        "paddle",
        "[2026/03/02 11:20:31] ppcls INFO: [Train][Epoch 1/20][Iter: 0/125]lr(PiecewiseDecay): 0.01250000, top1: 0.09375, top5: 0.40625, CELoss: 4.71300, loss: 4.71300, batch_cost: 1.20113s, reader_cost: 0.51131, ips: 26.64157 samples/s, eta: 0:50:02\n"
        "[2026/03/02 11:21:02] ppcls INFO: [Train][Epoch 1/20][Avg]top1: 0.31250, top5: 0.70312, CELoss: 3.20100, loss: 3.20100\n"
        "[2026/03/02 11:21:10] ppcls INFO: [Eval][Epoch 1][Avg]CELoss: 2.61000, loss: 2.61000, top1: 0.41200, top5: 0.80100\n",
        {
            "train_top1": [(None, 0.09375), (1, 0.3125)],
            "train_top5": [(None, 0.40625), (1, 0.70312)],
            "train_celoss": [(None, 4.713), (1, 3.201)],
            "train_loss": [(None, 4.713), (1, 3.201)],
            "eval_celoss": [(1, 2.61)],
            "eval_loss": [(1, 2.61)],
            "eval_top1": [(1, 0.412)],
            "eval_top5": [(1, 0.801)],
        },
    ),
    Case(
        "grid search",
        "Fitting 3 folds for each of 2 candidates, totalling 6 fits\n"
        "[CV 1/3] END ....................C=0.1, kernel=rbf;, score=0.881 total time=   0.1s\n"
        "[CV 2/3] END ....................C=0.1, kernel=rbf;, score=0.902 total time=   0.1s\n"
        "Best parameters: {'C': 0.1, 'kernel': 'rbf'}\nBest cross-validation score: 0.892\n",
        {"score": [(None, 0.881), (None, 0.902)], "best_cross_validation_score": [(None, 0.892)]},
    ),
    Case(
        "evaluation table",
        "| Tasks |Version|Filter|n-shot| Metric |   |Value |   |Stderr|\n|-------|------:|------|-----:|--------|---|-----:|---|-----:|\n"
        "|boolq  |      2|none  |     0|acc     |↑  |0.7211|±  |0.0078|\n|piqa   |      1|none  |     0|acc_norm|↑  |0.7802|±  |0.0097|\n",
        {"boolq_acc": [(None, 0.7211)], "piqa_acc_norm": [(None, 0.7802)]},
    ),
    Case(
        "ignite",
        "Training Results - Epoch: 1  Avg accuracy: 0.91 Avg loss: 0.31\nValidation Results - Epoch: 1  Avg accuracy: 0.89 Avg loss: 0.35\n"
        "Training Results - Epoch: 2  Avg accuracy: 0.95 Avg loss: 0.18\nValidation Results - Epoch: 2  Avg accuracy: 0.93 Avg loss: 0.22\n",
        {
            "training_avg_accuracy": [(1, 0.91), (2, 0.95)],
            "training_avg_loss": [(1, 0.31), (2, 0.18)],
            "validation_avg_accuracy": [(1, 0.89), (2, 0.93)],
            "validation_avg_loss": [(1, 0.35), (2, 0.22)],
        },
    ),
    Case(
        "glue",
        "11/18/2026 10:01:22 - INFO - __main__ - ***** Running training *****\n11/18/2026 10:01:22 - INFO - __main__ -   Num examples = 3668\n"
        "11/18/2026 10:01:22 - INFO - __main__ -   Num Epochs = 3\n11/18/2026 10:01:22 - INFO - __main__ -   Instantaneous batch size per device = 8\n"
        "11/18/2026 10:03:11 - INFO - __main__ - epoch 0: {'accuracy': 0.7230392156862745, 'f1': 0.8245}\n"
        "11/18/2026 10:05:02 - INFO - __main__ - epoch 1: {'accuracy': 0.8308823529411765, 'f1': 0.8812}\n"
        "***** eval metrics *****\n  epoch                   =        3.0\n  eval_accuracy           =     0.8407\n  eval_combined_score     =     0.8651\n"
        "  eval_f1                 =     0.8894\n  eval_loss               =     0.3911\n  eval_runtime            = 0:00:02.10\n  eval_samples            =        408\n"
        "  eval_samples_per_second =    194.101\n  eval_steps_per_second   =     24.3\n",
        {
            "accuracy": [(0, 0.7230392156862745), (1, 0.8308823529411765)],
            "f1": [(0, 0.8245), (1, 0.8812)],
            "eval_accuracy": [(None, 0.8407)],
            "eval_combined_score": [(None, 0.8651)],
            "eval_f1": [(None, 0.8894)],
            "eval_loss": [(None, 0.3911)],
        },
    ),
    Case(
        "nanochat",
        "Vocab size: 65,536\nnum_layers: 20\nmodel_dim: 1280\nNumber of parameters: 560,988,160\nEstimated FLOPs per token: 3.491758e+09\n"
        "Tokens : Params ratio: 20.00\nStep 00000 | Validation bpb: 3.3013\n"
        "step 00000/21400 (0.00%) | loss: 11.090355 | grad norm: 0.2310 | lrm: 1.00 | dt: 21233.10ms | tok/sec: 24,691 | mfu: 2.10 | total time: 0.00m\n"
        "step 00001/21400 (0.00%) | loss: 10.808654 | grad norm: 0.2011 | lrm: 1.00 | dt: 1102.93ms | tok/sec: 475,362 | mfu: 41.90 | total time: 0.00m\n"
        "Step 00250 | Validation bpb: 1.1041\n",
        {"validation_bpb": [(0, 3.3013), (250, 1.1041)], "loss": [(0, 11.090355), (1, 10.808654)]},
    ),
    Case(
        "modded-nanogpt",
        "step:0/1770 val_loss:10.8258 train_time:0ms step_avg:0.03ms\nstep:1/1770 train_time:134ms step_avg:133.80ms\n"
        "step:125/1770 val_loss:4.6011 train_time:11702ms step_avg:93.62ms\npeak memory allocated: 31590 MiB reserved: 46394 MiB\n",
        {"val_loss": [(0, 10.8258), (125, 4.6011)]},
    ),
    Case(
        "gan",
        "Starting Training Loop...\n[0/5][0/1583]\tLoss_D: 1.8421\tLoss_G: 5.1200\tD(x): 0.5320\tD(G(z)): 0.5711 / 0.0081\n"
        "[0/5][50/1583]\tLoss_D: 0.2010\tLoss_G: 21.0400\tD(x): 0.9301\tD(G(z)): 0.0000 / 0.0000\n"
        "[1/5][0/1583]\tLoss_D: 0.4100\tLoss_G: 4.0400\tD(x): 0.8301\tD(G(z)): 0.1000 / 0.0300\n",
        {
            "loss_d": [(None, 1.8421), (None, 0.201), (None, 0.41)],
            "loss_g": [(None, 5.12), (None, 21.04), (None, 4.04)],
        },
    ),
    Case(
        "gan by epoch and batch",
        "[Epoch 0/200] [Batch 0/938] [D loss: 0.691021] [G loss: 0.702113]\n[Epoch 0/200] [Batch 1/938] [D loss: 0.611021] [G loss: 0.699113]\n"
        "[Epoch 1/200] [Batch 0/938] [D loss: 0.401021] [G loss: 1.302113]\n",
        {
            "d_loss": [(None, 0.691021), (None, 0.611021), (None, 0.401021)],
            "g_loss": [(None, 0.702113), (None, 0.699113), (None, 1.302113)],
        },
    ),
    Case(
        "speech",
        "Loading checkpoint exp/asr/avg_10.pt\nepoch: 7 - lr: 3.1e-04 - train loss: 12.91 - valid loss: 14.02, valid CER: 6.11, valid WER: 17.80\n"
        "epoch: 8 - lr: 3.0e-04 - train loss: 11.20 - valid loss: 13.55, valid CER: 5.70, valid WER: 16.42\n"
        "%WER 15.92 [ 8371 / 52576, 812 ins, 1031 del, 6528 sub ]\n%SER 71.20 [ 1865 / 2620 ]\n",
        {
            "train_loss": [(7, 12.91), (8, 11.2)],
            "valid_loss": [(7, 14.02), (8, 13.55)],
            "valid_cer": [(7, 6.11), (8, 5.7)],
            "valid_wer": [(7, 17.8), (8, 16.42)],
            "wer": [(None, 15.92)],
        },
    ),
    Case(
        "translation",
        "Generate test with beam=5: BLEU4 = 27.41, 59.1/33.2/21.0/13.7 (BP=0.981, ratio=0.981, syslen=129811, reflen=132301)\n",
        {"bleu4": [(None, 27.41)]},
    ),
    Case(
        "segmentation",
        "2026-04-01 08:12:55,101 - seg - INFO - per class results:\n2026-04-01 08:12:55,102 - seg - INFO - \n+----------+-------+-------+\n|  Class   |  IoU  |  Acc  |\n"
        "+----------+-------+-------+\n|   road   | 97.12 | 98.41 |\n| sidewalk | 79.05 | 88.10 |\n+----------+-------+-------+\n"
        "[epoch 12] pixAcc: 0.931, mIoU: 0.712\n[epoch 13] pixAcc: 0.936, mIoU: 0.719\n",
        {"pixacc": [(12, 0.931), (13, 0.936)], "miou": [(12, 0.712), (13, 0.719)]},
    ),
    Case(
        "coco",
        "Loading and preparing results...\nDONE (t=0.52s)\ncreating index...\nindex created!\nRunning per image evaluation...\nDONE (t=12.30s).\nAccumulating evaluation results...\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.379\n"
        " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.592\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.211\n"
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.312\n",
        {
            "ap": [(None, 0.379)],
            "ap_iou_0_50": [(None, 0.592)],
            "ap_area_small": [(None, 0.211)],
            "ar_maxdets_1": [(None, 0.312)],
        },
    ),
    Case(
        "regression",
        "X_train shape: (16512, 8)\nX_test shape: (4128, 8)\nFitting took 3.21 seconds\nRMSE: 0.4981\nMAE: 0.3312\nR2: 0.8107\nR^2 score: 0.8107\n",
        {"rmse": [(None, 0.4981)], "mae": [(None, 0.3312)], "r2": [(None, 0.8107)], "r_2_score": [(None, 0.8107)]},
    ),
    Case(
        "folds",
        "train: (200000, 202) test: (200000, 201)\nFold 1 AUC: 0.8012\nFold 2 AUC: 0.7951\nFold 3 AUC: 0.8102\nOverall OOF AUC: 0.8021\nCV score: 0.80210 +/- 0.0061\n",
        {
            "auc": [(1, 0.8012), (2, 0.7951), (3, 0.8102)],
            "overall_oof_auc": [(None, 0.8021)],
            "cv_score": [(None, 0.8021)],
        },
    ),
    Case("bare numbers", "0 2.3012\n1 1.9011\n2 1.7720\n", {}),
    Case(
        "file and line",
        "2026-11-18 10:22:01,332 [trainer.py:118] INFO: iter 100, loss 0.7312, data_time 0.0021\n2026-11-18 10:22:09,118 [trainer.py:118] INFO: iter 200, loss 0.6120, data_time 0.0019\n",
        {"loss": [(100, 0.7312), (200, 0.612)]},
    ),
    Case(
        "log level at the front",
        'INFO:train:epoch=1 train_loss=0.9 valid_loss=1.1\nINFO:train:epoch=2 train_loss=0.7 valid_loss=1.0\nDEBUG:urllib3.connectionpool:https://host:443 "GET /x HTTP/1.1" 200 1520\n',
        {"train_loss": [(1, 0.9), (2, 0.7)], "valid_loss": [(1, 1.1), (2, 1.0)]},
    ),
    Case(
        "loguru",
        "2026-11-18 09:14:31.118 | INFO     | yolox.core.trainer:after_iter:260 - epoch: 1/300, iter: 10/925, mem: 5230Mb, iter_time: 0.512s, data_time: 0.011s, total_loss: 17.2, iou_loss: 4.6, l1_loss: 0.0, conf_loss: 10.9, cls_loss: 1.7, lr: 1.169e-08, size: 640, ETA: 1 day, 15:28:22\n"
        "2026-11-18 09:14:36.002 | INFO     | yolox.core.trainer:after_iter:260 - epoch: 1/300, iter: 20/925, mem: 5230Mb, iter_time: 0.401s, data_time: 0.001s, total_loss: 15.1, iou_loss: 4.5, l1_loss: 0.0, conf_loss: 9.1, cls_loss: 1.5, lr: 4.675e-08, size: 512, ETA: 1 day, 11:10:02\n",
        {
            "total_loss": [(10, 17.2), (20, 15.1)],
            "iou_loss": [(10, 4.6), (20, 4.5)],
            "l1_loss": [(10, 0.0), (20, 0.0)],
            "conf_loss": [(10, 10.9), (20, 9.1)],
            "cls_loss": [(10, 1.7), (20, 1.5)],
        },
    ),
    Case(
        "structlog",
        "2026-11-18T10:00:01Z [info     ] epoch finished                 [train] epoch=1 loss=0.81 seconds=12.1 val_acc=0.61\n"
        "2026-11-18T10:00:14Z [info     ] epoch finished                 [train] epoch=2 loss=0.62 seconds=12.0 val_acc=0.70\n",
        {"loss": [(1, 0.81), (2, 0.62)], "val_acc": [(1, 0.61), (2, 0.7)]},
    ),
    Case(
        "french",
        "Époque 1/3 - perte : 0,912 - exactitude : 0,612\nÉpoque 2/3 - perte : 0,701 - exactitude : 0,733\n",
        {"perte": [(1, 0.912), (2, 0.701)], "exactitude": [(1, 0.612), (2, 0.733)]},
    ),
    Case(
        "chinese",
        "第1轮 损失: 0.91 准确率: 0.61\n第2轮 损失: 0.72 准确率: 0.70\n",
        {"损失": [(None, 0.91), (None, 0.72)], "准确率": [(None, 0.61), (None, 0.7)]},
    ),
    Case("windows line ends", "epoch 1: loss 0.5\r\nepoch 2: loss 0.4\r\n", {"loss": [(1, 0.5), (2, 0.4)]}),
    Case(
        "processes in turn",
        "[Rank 1] step 10 loss 0.91\n[Rank 0] step 10 loss 0.90\n[Rank 1] step 20 loss 0.81\n[Rank 0] step 20 loss 0.80\n",
        {"loss": [(10, 0.9), (20, 0.8)]},
    ),
    Case(
        "arguments",
        "Namespace(batch_size=64, epochs=14, gamma=0.7, label_smoothing=0.1, loss='ce', lr=1.0, loss_scale=128.0, test_batch_size=1000)\n"
        "==> Options:\n         batch_size: 64\n         lambda_l1: 100.0\n         lr: 0.0002 \t[default: 0.001]\n         margin_loss: 0.3\n----------------- End -------------------\n",
    ),
    Case(
        "yaml settings",
        "model:\n  hidden: 256\n  dropout: 0.1\noptimizer:\n  lr: 0.0003\n  weight_decay: 0.01\nloss:\n  label_smoothing: 0.1\n  focal_loss_gamma: 2.0\ntrainer:\n  max_epochs: 10\n  val_check_interval: 0.5\nseed: 42\n",
    ),
    Case(
        "a dataclass",
        "TrainConfig(lr=0.0003, max_steps=2000, target_score=0.9, loss=LossConfig(alpha=0.25, gamma=2.0), optim=OptimConfig(beta1=0.9))\n"
        "Training with config: {'lr': 0.1, 'epochs': 3, 'accuracy_threshold': 0.9}\n",
    ),
    Case(
        "indented json settings",
        'Model config BertConfig {\n  "attention_probs_dropout_prob": 0.1,\n  "hidden_size": 768,\n  "layer_norm_eps": 1e-12,\n  "mlm_loss_weight": 1.0,\n  "vocab_size": 30522\n}\n'
        '{\n  "learning_rate": 0.001,\n  "reward_scale": 0.1,\n  "score": 5\n}\n',
    ),
    Case(
        "model summary",
        "=================================================================\nLayer (type:depth-idx)          Output Shape       Param #\n=================================================================\n"
        "├─Conv2d: 1-1                   [-1, 32, 26, 26]   320\n├─Linear: 1-2                   [-1, 10]           1,290\n=================================================================\n"
        "Total params: 1,610\nTrainable params: 1,610\nTotal mult-adds (M): 0.23\nInput size (MB): 0.00\nForward/backward pass size (MB): 0.17\n",
    ),
    Case(
        "downloads",
        "Collecting scikit-learn>=1.3.0\n  Downloading scikit_learn-1.3.2-cp311-manylinux.whl (10.9 MB)\n     ━━━━━━━━━━━━━━━━━━ 10.9/10.9 MB 45.2 MB/s eta 0:00:00\n"
        "\rmodel.safetensors:  42%|####2     | 231M/548M [00:03<00:05, 61.2MB/s]\rmodel.safetensors: 100%|##########| 548M/548M [00:08<00:00, 62.0MB/s]\n"
        "\rMap:  50%|#####     | 5000/10000 [00:01<00:01, 4800.12 examples/s]\rMap: 100%|##########| 10000/10000 [00:02<00:00, 4810.55 examples/s]\n",
    ),
    Case(
        "warnings",
        "/usr/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:143: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later\n"
        "FutureWarning: The default value of n_init will change from 10 to 'auto' in 1.4\nDeprecationWarning: `loss` is deprecated since 2.1, use `criterion` in 3.0\n"
        "2026-11-18 10:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is optimized, loss of precision 1.5\n",
    ),
    Case(
        "sizes of the data",
        "Train set: 50000 images, 10 classes\nval set: 10000 images\nlen(train_loader): 391\nLoaded 120 training samples and 30 test samples\nTrain: 48000 Val: 12000 Test: 10000\nTrain samples: 48000\nTest size: 0.2\n",
    ),
    Case(
        "times",
        "Epoch 1 finished in 12.31 s\nEpoch 2 finished in 12.02 s\nTraining complete in 0m 24s\nTotal training time: 24.33\nAverage inference latency: 3.2 ms\nEpoch time: 12.10\nEval time: 2.01\n",
    ),
    Case(
        "transfer learning tutorial",
        "Epoch 0/1\n----------\ntrain Loss: 0.6011 Acc: 0.6885\nval Loss: 0.2410 Acc: 0.9020\n\nEpoch 1/1\n----------\ntrain Loss: 0.4910 Acc: 0.7910\nval Loss: 0.2802 Acc: 0.8889\n\n"
        "Training complete in 1m 7s\nBest val Acc: 0.902000\n",
        {
            "train_loss": [(0, 0.6011), (1, 0.491)],
            "train_acc": [(0, 0.6885), (1, 0.791)],
            "val_loss": [(0, 0.241), (1, 0.2802)],
            "val_acc": [(0, 0.902), (1, 0.8889)],
            "best_val_acc": [(None, 0.902)],
        },
    ),
    Case(
        "quickstart tutorial",
        "Epoch 1\n-------------------------------\nloss: 2.303494  [   64/60000]\nloss: 2.294637  [ 6464/60000]\nTest Error: \n Accuracy: 48.8%, Avg loss: 2.158023 \n\n"
        "Epoch 2\n-------------------------------\nloss: 2.166840  [   64/60000]\nloss: 2.151111  [ 6464/60000]\nTest Error: \n Accuracy: 58.6%, Avg loss: 1.890011 \n\nDone!\n",
        {
            "loss": [(None, 2.303494), (None, 2.294637), (None, 2.16684), (None, 2.151111)],
            "test_accuracy": [(1, 48.8), (2, 58.6)],
            "test_avg_loss": [(1, 2.158023), (2, 1.890011)],
        },
    ),
    Case(
        "keras without bars",
        "Epoch 1/2\n782/782 - 12s - loss: 1.5211 - accuracy: 0.4480 - val_loss: 1.2410 - val_accuracy: 0.5511 - 12s/epoch - 15ms/step\n"
        "Epoch 2/2\n782/782 - 11s - loss: 1.1811 - accuracy: 0.5790 - val_loss: 1.1010 - val_accuracy: 0.6123 - 11s/epoch - 14ms/step\n",
        {
            "loss": [(1, 1.5211), (2, 1.1811)],
            "accuracy": [(1, 0.448), (2, 0.579)],
            "val_loss": [(1, 1.241), (2, 1.101)],
            "val_accuracy": [(1, 0.5511), (2, 0.6123)],
        },
    ),
    Case(
        "reinforcement learning by hand",
        "Episode 10\tLast reward: 24.00\tAverage reward: 16.21\nEpisode 20\tLast reward: 55.00\tAverage reward: 27.92\nSolved! Running reward is now 475.3 and the last episode runs to 500 time steps!\n",
        {
            "last_reward": [(10, 24.0), (20, 55.0)],
            "average_reward": [(10, 16.21), (20, 27.92)],
            "running_reward": [(None, 475.3)],
        },
    ),
    Case(
        "rllib",
        "Training finished iteration 1 at 2026-11-18 10:00:00. Total running time: 31s\n╭─────────────────────────────────────╮\n│ Training result                     │\n├─────────────────────────────────────┤\n"
        "│ episode_reward_mean           22.51 │\n│ episode_len_mean              22.51 │\n│ num_env_steps_sampled          4000 │\n│ time_this_iter_s            6.10225 │\n│ training_iteration                1 │\n╰─────────────────────────────────────╯\n",
        {"episode_reward_mean": [(1, 22.51)]},
    ),
    Case(
        "diffusion",
        "loading data from /data/cifar\nStep: 100, Loss: 0.0912, Time: 31.20s\nStep: 200, Loss: 0.0511, Time: 30.90s\nFID: 21.4021  IS: 7.9112 (0.0911)\n",
        {"loss": [(100, 0.0912), (200, 0.0511)], "fid": [(None, 21.4021)]},
    ),
    Case(
        "recommender",
        "2026-11-18 10:00 INFO  epoch 0 training [time: 2.11s, train loss: 18.9021]\n2026-11-18 10:00 INFO  epoch 0 evaluating [time: 0.31s, valid_score: 0.020500]\n"
        "2026-11-18 10:00 INFO  valid result: \nrecall@10 : 0.0205    mrr@10 : 0.0191    ndcg@10 : 0.0150    hit@10 : 0.0861    precision@10 : 0.0098\n"
        "2026-11-18 10:01 INFO  epoch 1 training [time: 2.01s, train loss: 15.1011]\n2026-11-18 10:01 INFO  epoch 1 evaluating [time: 0.30s, valid_score: 0.041100]\n"
        "2026-11-18 10:01 INFO  valid result: \nrecall@10 : 0.0411    mrr@10 : 0.0301    ndcg@10 : 0.0270    hit@10 : 0.1211    precision@10 : 0.0149\n",
        {
            "train_loss": [(0, 18.9021), (1, 15.1011)],
            "valid_score": [(0, 0.0205), (1, 0.0411)],
            "valid_recall_10": [(None, 0.0205), (None, 0.0411)],
            "valid_mrr_10": [(None, 0.0191), (None, 0.0301)],
            "valid_ndcg_10": [(None, 0.015), (None, 0.027)],
            "valid_hit_10": [(None, 0.0861), (None, 0.1211)],
            "valid_precision_10": [(None, 0.0098), (None, 0.0149)],
        },
    ),
    Case(
        "graph networks",
        "Epoch: 001, Loss: 1.9511, Train: 0.2786, Val: 0.2320, Test: 0.2410\nEpoch: 002, Loss: 1.9380, Train: 0.5000, Val: 0.3200, Test: 0.3360\n",
        {
            "loss": [(1, 1.9511), (2, 1.938)],
            "train": [(1, 0.2786), (2, 0.5)],
            "val": [(1, 0.232), (2, 0.32)],
            "test": [(1, 0.241), (2, 0.336)],
        },
    ),
    Case(
        "several words by hand",
        "Epoch: 1 \tTraining Loss: 0.912011 \tValidation Loss: 0.801021\nValidation loss decreased (inf --> 0.801021).  Saving model ...\n"
        "Epoch: 2 \tTraining Loss: 0.712011 \tValidation Loss: 0.701021\nValidation loss decreased (0.801021 --> 0.701021).  Saving model ...\n"
        "EarlyStopping counter: 1 out of 7\nTest Accuracy of   cat: 61% (611/1000)\nTest Accuracy (Overall): 73% (7312/10000)\n",
        {
            "training_loss": [(1, 0.912011), (2, 0.712011)],
            "validation_loss": [(1, 0.801021), (2, 0.701021)],
            "test_accuracy": [(None, 61.0)],
            "test_accuracy_overall": [(None, 73.0)],
        },
    ),
    Case(
        "a summary of averages",
        "Averaged stats: lr: 0.000100  loss: 6.4001 (6.7012)  class_error: 100.00 (98.50)\nEpoch: [0]  [ 10/100]  eta: 0:01:02  lr: 0.000100  loss: 6.9011 (7.0123)  time: 0.6910  data: 0.0101  max mem: 3012\n"
        "Epoch: [0]  [ 20/100]  eta: 0:00:52  lr: 0.000100  loss: 6.7011 (6.9123)  time: 0.6310  data: 0.0099  max mem: 3012\n",
        {"loss": [(None, 6.4001), (None, 6.9011), (None, 6.7011)], "class_error": [(None, 100.0)]},
    ),
    Case(
        "pytorch lightning test table",
        "────────────────────────────────────────────────────────────\n       Test metric             DataLoader 0\n────────────────────────────────────────────────────────────\n"
        "        test_acc            0.9611999988555908\n        test_loss           0.1290121078491211\n────────────────────────────────────────────────────────────\n",
        {"test_acc": [(None, 0.9611999988555908)], "test_loss": [(None, 0.1290121078491211)]},
    ),
    Case(
        "trl",
        "{'loss': 0.6911, 'grad_norm': 2.31, 'learning_rate': 5e-07, 'rewards/chosen': 0.0021, 'rewards/rejected': -0.0011, 'rewards/accuracies': 0.53, 'rewards/margins': 0.0032, 'logps/chosen': -231.2, 'epoch': 0.1}\n"
        "{'loss': 0.6520, 'grad_norm': 2.11, 'learning_rate': 1e-06, 'rewards/chosen': 0.0421, 'rewards/rejected': -0.0311, 'rewards/accuracies': 0.66, 'rewards/margins': 0.0732, 'logps/chosen': -228.9, 'epoch': 0.2}\n",
        {
            "loss": [(None, 0.6911), (None, 0.652)],
            "rewards_chosen": [(None, 0.0021), (None, 0.0421)],
            "rewards_rejected": [(None, -0.0011), (None, -0.0311)],
            "rewards_accuracies": [(None, 0.53), (None, 0.66)],
            "rewards_margins": [(None, 0.0032), (None, 0.0732)],
            "logps_chosen": [(None, -231.2), (None, -228.9)],
        },
    ),
    Case(
        "object detection evaluation",
        "                 Class     Images  Instances          P          R      mAP50   mAP50-95: 100%|██████████| 4/4 [00:01<00:00,  3.11it/s]\n"
        "                   all        128        929       0.64      0.537      0.605      0.446\n                person        128        254      0.797      0.677      0.764      0.538\n"
        "Speed: 0.2ms preprocess, 2.1ms inference, 0.0ms loss, 0.9ms postprocess per image\nResults saved to runs/detect/val\n",
        {"p": [(None, 0.64)], "r": [(None, 0.537)], "map50": [(None, 0.605)], "map50_95": [(None, 0.446)]},
    ),
    Case(
        "julia",
        "[ Info: Epoch 1: train loss = 0.4123 (acc = 87.12%), test loss = 0.3881 (acc = 88.40%)\n[ Info: Epoch 2: train loss = 0.3011 (acc = 90.92%), test loss = 0.3102 (acc = 91.01%)\n",
        {
            "train_loss": [(1, 0.4123), (2, 0.3011)],
            "train_acc": [(1, 87.12), (2, 90.92)],
            "test_loss": [(1, 0.3881), (2, 0.3102)],
            "test_acc": [(1, 88.4), (2, 91.01)],
        },
    ),
    Case(
        "bayesian optimisation",
        "|   iter    |  target   |     x     |     y     |\n-------------------------------------------------\n| 1         | -7.135    | 2.834     | 1.322     |\n| 2         | -7.78     | 2.0       | -1.186    |\n=================================================\n",
        {},
    ),
    Case(
        "federated learning",
        "INFO flwr 2026-11-18 10:00:00,101 | server.py:125 | fit progress: (1, 0.0312, {'accuracy': 0.7711}, 12.2)\nINFO :      [ROUND 2]\nRound 2, global accuracy: 0.8112, global loss: 0.0251\nRound 3, global accuracy: 0.8312, global loss: 0.0211\n",
        {
            "accuracy": [(None, 0.7711)],
            "global_accuracy": [(2, 0.8112), (3, 0.8312)],
            "global_loss": [(2, 0.0251), (3, 0.0211)],
        },
    ),
    Case(
        "cross-validation with arrays",
        "Scores: [0.91 0.93 0.89]\nMean accuracy: 0.910 (+/- 0.016)\n[[50  2]\n [ 3 45]]\n",
        {"mean_accuracy": [(None, 0.91)]},
    ),
]
