#!/bin/bash
# Stands in for systemd in a root that has none, for deploying.ts: starts what the units say, as their user and with
# their environment. It does not restart anything, and applies none of the hardening but the lack of capabilities.
set -euo pipefail

start() {
  local instance="${1#*@}" file=/etc/systemd/system/$1.service
  [[ $1 == *@* ]] && file=/etc/systemd/system/${1%%@*}@.service
  value() { sed -n "s/^$1=//p" "$file" | sed "s/%i/$instance/g"; }
  cd "$(value WorkingDirectory)"
  # shellcheck disable=SC2046
  setpriv --reuid="$(value User)" --regid=farthing --init-groups --no-new-privs --bounding-set=-all \
    env -i PATH=/usr/bin:/bin $(grep -v '^#' "$(value EnvironmentFile)") $(value Environment) \
    $(value ExecStart) >"/var/log/$1.log" 2>&1 </dev/null &
}

case "$1 ${2:-}" in
  'daemon-reload ') ;;
  'enable --now')
    for unit in "${@:3}"; do
      if [[ $unit == *.timer ]]; then test -f "/etc/systemd/system/${unit%.timer}.service"; else start "$unit"; fi
    done
    ;;
  'reload nginx') nginx ;;
  'restart prometheus')
    prometheus --config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path=/tmp/prometheus \
      --web.listen-address=127.0.0.1:9090 >/var/log/prometheus.log 2>&1 </dev/null &
    ;;
  *)
    echo "systemctl $* is not known here" >&2
    exit 1
    ;;
esac
