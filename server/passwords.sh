#!/bin/sh
# Lets the roles of rights/roles.sql log in, with passwords from the environment of the PostgreSQL container.
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "${POSTGRES_DB:-$POSTGRES_USER}" \
  --set owner="$DATABASE_OWNER_PASSWORD" --set serve="$DATABASE_SERVE_PASSWORD" --set work="$DATABASE_WORK_PASSWORD" \
  --set console="$DATABASE_CONSOLE_PASSWORD" --set operator="$DATABASE_OPERATOR_PASSWORD" <<'SQL'
alter role farthing_owner login password :'owner';
alter role farthing_serve login password :'serve';
alter role farthing_work login password :'work';
alter role farthing_console login password :'console';
alter role farthing_operator login password :'operator';
SQL
