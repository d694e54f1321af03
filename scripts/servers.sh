#!/bin/sh
# Install the servers that tests start, PostgreSQL and nginx, where that is possible: tests skip what is not there.
set -eu

has_postgresql() { command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }
has_nginx() { PATH="$PATH:/usr/sbin" command -v nginx >/dev/null; }

has_postgresql && has_nginx && exit
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Tests of PostgreSQL and nginx are skipped: their programs are not installed" >&2
    exit
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql nginx >/dev/null ||
    echo "Tests of PostgreSQL and nginx are skipped: they could not be installed" >&2
