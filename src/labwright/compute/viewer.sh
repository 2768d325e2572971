# What a run's tmux window shows: its output as it grows; what is typed goes to the job.
# Arguments: the run folder, the job's process id (also its process group), "tty" or "lines".
dir=$1 job=$2 kind=$3
exec 3<&0
# The job's terminal is as large as the window that was opened or resized last.
fit() {
    size=$(stty size <&3) && stty rows "${size% *}" cols "${size#* }" <"/proc/$job/fd/0"
}
if [ "$kind" = tty ]; then
    stty raw -echo <&3 2>/dev/null # every key as it is; the job's own terminal echoes and edits
    trap 'fit 2>/dev/null' WINCH
    fit 2>/dev/null
else
    trap 'kill -s INT -- "-$job" 2>/dev/null' INT # Ctrl-C is meant for the job, not for this window
fi
(trap '' INT; exec tail -c 200000 --pid="$job" -f "$dir/output.log") &
follower=$!
# A job has its input a moment after it began; a file of that name made by us would swallow what is typed until then.
# Ctrl-D ends a cat, not the typing: the job's input has no end.
(trap '' INT; until [ -e "$dir/stdin" ]; do sleep 0.05; done; while cat <&3 >"$dir/stdin"; do :; done) 2>/dev/null &
typist=$!
while kill -0 "$follower" 2>/dev/null; do wait "$follower"; done
kill "$typist" 2>/dev/null
