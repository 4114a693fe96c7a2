#!/usr/bin/env bash
# Starts Alertmanager with the alertmanager.yml beside this script and the options that are given. ALERT_WEBHOOK_URL, if it
# is not empty, becomes a webhook of the last receiver; it may hold a token, hence the memory file system ALERT_FOLDER.
# Exit code 2: what came of both is no configuration.
set -euo pipefail
config=${ALERT_FOLDER:-/run/alertmanager}/alertmanager.yml
url=${ALERT_WEBHOOK_URL:-}

umask 077
cp "$(dirname "$0")/alertmanager.yml" "$config"
[ -z "$url" ] || printf "    webhook_configs:\n      - url: '%s'\n" "${url//\'/\'\'}" >>"$config"
if ! said=$(amtool check-config "$config" 2>&1); then
    printf '%s\n' "$said" "ALERT_WEBHOOK_URL or alertmanager.yml is not accepted: give an http or https URL, or nothing" >&2
    exit 2
fi
unset ALERT_WEBHOOK_URL
# One Alertmanager alone: it looks for no others.
exec prometheus-alertmanager --config.file="$config" --cluster.listen-address= "$@"
