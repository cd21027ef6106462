#!/bin/sh
# Gives the roles of roles.sql their passwords, from the environment of the PostgreSQL container.
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "${POSTGRES_DB:-$POSTGRES_USER}" \
  --set owner="$DATABASE_OWNER_PASSWORD" --set app="$DATABASE_APP_PASSWORD" <<'SQL'
alter role farthing_owner password :'owner';
alter role farthing_app password :'app';
SQL
