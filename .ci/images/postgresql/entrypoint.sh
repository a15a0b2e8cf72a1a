#!/usr/bin/env bash
# The part of the official image's entrypoint that docker-compose.yml relies on: on the first start, make a cluster with
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB; then become the server.
set -euo pipefail

if [ "$(id -u)" = 0 ]; then
  chown postgres:postgres "$PGDATA"
  chmod 700 "$PGDATA"
  exec gosu postgres "$0" "$@"
fi

if [ "${1:-postgres}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?must be set: it becomes the password of the first user}"
  user=${POSTGRES_USER:-postgres}
  database=${POSTGRES_DB:-$user}

  initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"

  # No TCP during setup, so that nobody takes this server for the real one.
  pg_ctl --wait --options="-c listen_addresses=''" start
  if [ "$database" != postgres ]; then
    psql --username="$user" --dbname=postgres --no-psqlrc --set=ON_ERROR_STOP=1 --set=database="$database" \
      <<<'CREATE DATABASE :"database";'
  fi
  pg_ctl --wait --mode=fast stop
fi

exec "$@"
