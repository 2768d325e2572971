// Settings that are changed here, in groups, with what they mean. All of them are in docs/reference/settings.md.

export const GROUPS = {
  models: {
    model: "Answers most questions, as provider:model. Empty: rules, and nothing leaves the machine",
    model_cheap: "For small questions. Empty: the model above",
    model_heavy: "For hard ones. Empty: the model above",
    session_usd_limit: "A conversation that cost so many dollars pauses and asks. 0: no limit",
    session_token_limit: "Likewise by tokens. 0: no limit",
    model_max_tokens: "Longest answer, in tokens. 0: as long as the provider lets it be",
    model_requests_per_minute: "At most so many questions to one provider. 0: no limit",
    model_silence_seconds: "A connection that is silent for longer is given up",
    model_answer_seconds: "Nor may one whole answer take longer",
    model_retries: "Further tries after a fault that passes",
    agent_max_rounds: "Answers of a model in one turn; then it stops and says so",
  },
  limits: {
    max_parallel: "Runs without GPUs at a time. 0: half the usable cores. A number set by hand on the cluster page goes before it",
    ageing_seconds: "After so long a run that wants several GPUs is no longer passed by narrower ones",
    gpu_busy_memory_mb: "A card with more memory in use is not free",
    gpu_busy_utilization: "Nor one that is busier than this, in percent",
    grace_seconds: "Between TERM and KILL when a run is stopped",
    log_cap_mb: "A larger output keeps its head and its tail. 0: no cap",
    system_metrics_seconds: "Between samples of a run's processor, memory and disk. 0: none",
    metrics_key_value: "Take key=value pairs in the output as metrics",
    keep_days: "Freeing space removes logs of runs that ended longer ago",
    keep_archived_days: "And deletes archived runs that ended longer ago",
    backup_minutes: "Between backups of the database",
    backups_kept: "How many of the newest are kept",
    agent_token_hours: "How long the token of a rendered skill is valid",
  },
};
