#!/usr/bin/env bash
# The part of the official image's entrypoint that docker-compose.yml relies on: on the first start, make a data folder
# with the time zones, root's MARIADB_ROOT_PASSWORD and MARIADB_DATABASE; then become the server.
set -euo pipefail

datadir=/var/lib/mysql

# What compose gives as `command` may be the server's options alone.
case ${1:-} in -*) set -- mariadbd "$@" ;; esac

if [ "$(id -u)" = 0 ]; then
  chown mysql:mysql "$datadir"
  exec gosu mysql "$0" "$@"
fi

if [ "${1:-}" = mariadbd ] && [ ! -d "$datadir/mysql" ]; then
  : "${MARIADB_ROOT_PASSWORD:?must be set: it becomes the password of root}"
  password=${MARIADB_ROOT_PASSWORD//\\/\\\\}
  password=${password//\'/\'\'}

  # This makes root at localhost alone. With the other way of authentication, root at 127.0.0.1 and at ::1 get accounts
  # without a password too, and these win over root at % below.
  mariadb-install-db --datadir="$datadir" --skip-test-db --auth-root-socket-user=root "${@:2}"

  # The server runs this before it takes its first connection, so that nobody meets it half set up.
  first=$(mktemp)
  {
    if [ -n "${MARIADB_DATABASE:-}" ]; then echo "CREATE DATABASE \`$MARIADB_DATABASE\`;"; fi
    echo "USE mysql;"
    mariadb-tzinfo-to-sql /usr/share/zoneinfo 2>/dev/null # it complains of every file that is no time zone
    echo "ALTER USER 'root'@'localhost' IDENTIFIED BY '$password';"
    echo "CREATE USER 'root'@'%' IDENTIFIED BY '$password';"
    echo "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;"
  } >"$first"
  set -- "$@" --init-file="$first"
fi

exec "$@"
