#!/bin/sh
# Starts PostgreSQL as the official image does, as far as compose.yaml relies on it: on a new volume it makes a cluster
# with the superuser POSTGRES_USER and runs the scripts in /docker-entrypoint-initdb.d, by its socket only, before it
# listens to others.
set -eu
data=/var/lib/postgresql/data
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

mkdir -p "$data" /var/run/postgresql
chown postgres:postgres "$data" /var/run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  chown postgres /tmp/password
  # Several arguments in one setting.
  # shellcheck disable=SC2086
  as_postgres initdb --pgdata "$data" --username "$POSTGRES_USER" --pwfile /tmp/password --auth-local trust \
    --auth-host scram-sha-256 ${POSTGRES_INITDB_ARGS:-}
  rm /tmp/password
  as_postgres pg_ctl --pgdata "$data" --wait --options "-c listen_addresses=''" start
  createdb --host /var/run/postgresql --username "$POSTGRES_USER" "$POSTGRES_USER"
  for script in /docker-entrypoint-initdb.d/*; do
    case $script in
      *.sql) psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --file "$script" ;;
      *.sh) sh -e "$script" ;;
    esac
  done
  as_postgres pg_ctl --pgdata "$data" --wait --mode fast stop
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -D "$data" -c listen_addresses='*'
