#!/usr/bin/env bash
# The demo: ask one bundled trace which kernel ran, and say in words what the exit status means.
# Usage: BIN=.venv/bin tools/demo.sh TRACE
set -uo pipefail
trace=$1

printf '%s\n' "A flag is a request, not a guarantee. This trace shows what ran:" "" \
    "\$ traceview check-dispatch $trace" ""
"$BIN/traceview" check-dispatch "$trace"
status=$?
echo
case $status in
    0) echo "Exit status 0: every expectation holds. In CI this passes." ;;
    1) echo "Exit status 1: the trace proves that an expectation does not hold. In CI this fails the build," \
            "and that is the point of this sample: nothing crashed, nothing warned, and the slow path ran." ;;
    3) echo "Exit status 3: the trace does not hold what is needed to judge. In CI this fails too, unless" \
            "you allow it." ;;
    *) echo "The demo could not run (exit status $status); the line above says why." >&2
       exit "$status" ;;
esac
printf '%s\n' "" "Next:" \
    "  $BIN/traceview check-dispatch YOUR_TRACE.json.gz   the same question for your own trace" \
    "  $BIN/traceview --help                              all commands" \
    "  ls sample_traces/                                  more samples, each with a note on how it was made"
