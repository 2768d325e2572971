"""A plan in the exact format, as a starting point."""

from __future__ import annotations

GOOD = """\
## 📋 Plan: Learning rate of the small transformer

### Objective
Find the learning rate with the best val_acc for train.py, e.g. for the default batch. Three seeds tell noise apart.

### Compute Setup
- Cluster type: local_gpu
- GPU count: 2
- gpuwrap: enabled
- Environment: venv

### Approach
1. **Baseline** — Run `train.py` as it is, with three seeds:
   ```bash
   ### Objective
   source .venv/bin/activate && python train.py --seed 0
   ```
2. **Sweep** — Create a sweep and one run a configuration through the API.

### Parameters to Sweep
| Parameter | Values | Rationale |
|-----------|:------:|-----------|
| `lr` | 1e-4, 3e-4, 1e-3 | one below and one above the default |
| schedule | cosine, `a\\|b`, (1, 2) | as in the report |

### Metrics
- **Primary**: val_acc — what the report compares
- **Secondary**: train_loss — shows divergence early

### Success Criteria
- [ ] val_acc of the best is above the baseline by two deviations
- [x] Every run has ended

### Risks & Mitigations
- **Risk**: the card is taken → **Mitigation**: gpuwrap waits
- **Risk**: lr of 1e-3 diverges → **Mitigation**: an alert rule stops it

### Estimated Effort
- **Runs**: 12 (4 configurations × 3 seeds)
- **Time**: 2 h
- **Resources**: 2 GPUs

### 💡 Workflow Improvements
- Keep the sweep's command as a script
"""
