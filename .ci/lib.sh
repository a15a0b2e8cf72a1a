# What the scripts beside this file share. Sourced, not run.
# shellcheck shell=bash

started=$SECONDS
packages_updated=

# One plain line per step, with the seconds since this script began: a slow or hanging step shows in any log.
say() {
  printf '[%s %4ds] %s\n' "$(basename "$0")" "$((SECONDS - started))" "$*" >&2
}

die() {
  say "failed: $*"
  exit 1
}

# Runs a command silently and shows its output only if it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "$*"
  fi
  rm -f "$log"
}

# Packages are installed only where they are missing, so a second run costs nothing and needs no network.
need_packages() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || die "needs root to install: ${missing[*]}"
  command -v apt-get >/dev/null || die "needs these packages, and there is no apt-get to install them: ${missing[*]}"
  say "installing ${missing[*]}"
  update_packages
  # RUNLEVEL=1 keeps the packages' own scripts from starting a daemon that nobody would stop again.
  quietly env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

update_packages() {
  [ -z "$packages_updated" ] || return 0
  quietly apt-get update
  packages_updated=yes
}

# The address this machine itself installs Debian packages from; it may be a mirror that only this network has.
debian_mirror() {
  local mirror
  mirror=$(debian_mirror_of_lists)
  if [ -z "$mirror" ]; then
    update_packages # the labels below are known only once the lists are there
    mirror=$(debian_mirror_of_lists)
  fi
  [ -n "$mirror" ] || die "there is no Debian archive among this machine's apt sources"
  printf '%s\n' "$mirror"
}

debian_mirror_of_lists() {
  # shellcheck disable=SC2016 # $(LABEL) is for apt-get
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "Debian" && !found { found = $2 } END { print found }'
}
