#!/bin/bash
# Stands in for systemd in a root that has none, for deploying.ts: starts what the units say, as their user and with
# their environment, and stops it. It does not restart anything, and applies none of the hardening but the lack of
# capabilities.
set -euo pipefail
pids=/run/stand-in
mkdir -p "$pids"

start() {
  local unit=$1 instance="${1#*@}" file=/etc/systemd/system/$1.service
  [[ $1 == *@* ]] && file=/etc/systemd/system/${1%%@*}@.service
  value() { sed -n "s/^$1=//p" "$file" | sed "s/%i/$instance/g"; }
  local user settings=()
  user=$(value User)
  # A file goes before Environment=, as in systemd: what comes last counts.
  for word in $(value Environment) $(value EnvironmentFile | xargs -r cat | grep -v '^#'); do settings+=("$word"); done
  cd "$(value WorkingDirectory)"
  # shellcheck disable=SC2046
  setpriv --reuid="$user" --regid="$(id -gn "$user")" --init-groups --no-new-privs --bounding-set=-all \
    env -i PATH=/usr/local/bin:/usr/bin:/bin "${settings[@]}" $(value ExecStart) >>"/var/log/$unit.log" 2>&1 </dev/null &
  echo $! >"$pids/$unit"
}

stop() {
  for file in "$pids"/$1; do
    [ -e "$file" ] || continue
    kill "$(cat "$file")" 2>/dev/null || true
    while kill -0 "$(cat "$file")" 2>/dev/null; do sleep 0.1; done
    rm "$file"
  done
}

on() {
  case "$1 $2" in
    'reload nginx') if [ -e /run/nginx.pid ] && kill -0 "$(cat /run/nginx.pid)" 2>/dev/null; then nginx -s reload; else nginx; fi ;;
    *' postgresql') pg_ctlcluster 15 main "$1" ;;
    *' prometheus')
      prometheus --config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path=/tmp/prometheus \
        --web.listen-address=127.0.0.1:9090 >/var/log/prometheus.log 2>&1 </dev/null &
      ;;
    'start '*.timer) test -f "/etc/systemd/system/${2%.timer}.service" ;;
    'start '*) [ -e "$pids/$2" ] || start "$2" ;;
    'stop '*) stop "$2" ;;
    'restart '*) stop "$2"; start "$2" ;;
    *) echo "systemctl $* is not known here" >&2; exit 1 ;;
  esac
}

case "$1 ${2:-}" in
  'daemon-reload ') ;;
  'enable --now') for unit in "${@:3}"; do on start "$unit"; done ;;
  *) for unit in "${@:2}"; do on "$1" "$unit"; done ;;
esac
