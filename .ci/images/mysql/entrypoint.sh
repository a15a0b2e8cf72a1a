#!/usr/bin/env bash
# The part of the official image's entrypoint that docker-compose.yml relies on: on the first start, make a data folder
# with the time zones, root's MYSQL_ROOT_PASSWORD and MYSQL_DATABASE; then become the server.
set -euo pipefail

datadir=/var/lib/mysql

# What compose gives as `command` may be the server's options alone.
case ${1:-} in -*) set -- mysqld "$@" ;; esac

if [ "$(id -u)" = 0 ]; then
  chown mysql:mysql "$datadir"
  exec gosu mysql "$0" "$@"
fi

if [ "${1:-}" = mysqld ] && [ ! -d "$datadir/mysql" ]; then
  : "${MYSQL_ROOT_PASSWORD:?must be set: it becomes the password of root}"
  password=${MYSQL_ROOT_PASSWORD//\\/\\\\}
  password=${password//\'/\'\'}

  "$@" --initialize-insecure

  # The server runs this before it takes its first connection, so that nobody meets it half set up.
  first=$(mktemp)
  {
    echo "SET SESSION sql_log_bin = 0;"
    if [ -n "${MYSQL_DATABASE:-}" ]; then echo "CREATE DATABASE \`$MYSQL_DATABASE\`;"; fi
    echo "USE mysql;"
    mysql_tzinfo_to_sql /usr/share/zoneinfo 2>/dev/null # it complains of every file that is no time zone
    echo "ALTER USER 'root'@'localhost' IDENTIFIED BY '$password';"
    echo "CREATE USER 'root'@'%' IDENTIFIED BY '$password';"
    echo "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;"
  } >"$first"
  set -- "$@" --init-file="$first"
fi

exec "$@"
