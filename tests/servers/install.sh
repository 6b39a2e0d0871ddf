# shellcheck shell=bash
# Getting what is missing: Debian packages for PostgreSQL and Redis, jars for Kafka and Cassandra (java.sh).
# Each server has has_SERVER, which is quick, and get_SERVER.

install_servers() { # SERVER…
    local server status missing=() failed=()
    [ $# -gt 0 ] || set -- postgres redis kafka cassandra
    for server; do
        is_complete "$server" || missing+=("$server")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    lock_servers "${missing[*]}"
    for server in "${missing[@]}"; do
        # Another installation may have got it while this one waited.
        ! is_complete "$server" || continue
        echo "tests/services: installing $server" >&2
        # Not within a condition: there bash goes on after an error, whatever `set -e` says.
        set +e
        (set -e; "get_$server")
        status=$?
        set -e
        [ "$status" = 0 ] || failed+=("$server")
    done
    # All that the jars need has been copied out of it. After a failure it spares the next try the same downloads.
    [ ${#failed[@]} -gt 0 ] || rm -rf "$SERVERS/maven"
    [ ${#failed[@]} = 0 ] || fail "could not install ${failed[*]}: see above"
}

is_complete() { # SERVER
    case $1 in
        postgres | redis) "has_$1" ;;
        kafka | cassandra) "has_$1" && has_class_archive "$1" ;;
        *) fail "cannot install $1: postgres, redis, kafka, cassandra" ;;
    esac
}

lock_servers() { # WHAT
    { mkdir -p "$SERVERS" && [ -w "$SERVERS" ]; } 2>/dev/null ||
        fail "cannot install $1: cannot write $SERVERS; set XDG_CACHE_HOME to a folder that can be written"
    exec 9>"$SERVERS/lock"
    flock 9
    # Of an installation that was cut off.
    rm -rf "$SERVERS"/draft.*
}

install_packages() { # SERVER PACKAGE…
    local server=$1 log policy=/usr/sbin/policy-rc.d
    shift
    command -v apt-get >/dev/null ||
        fail "cannot install $server: there is no apt-get here; install it yourself, with its client"
    [ "$(id -u)" = 0 ] ||
        fail "cannot install $server: only root may; run as root: apt-get install --no-install-recommends $*"

    log=$SERVERS/apt.log
    # A package starts its server on the usual port as soon as it is unpacked, unless this file says no.
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod a+x "$policy"
        # shellcheck disable=SC2064 # as it is now
        trap "rm -f $policy" EXIT
    fi
    # The lists of packages may be missing, or older than what the mirrors still have.
    apt_get install "$@" >"$log" 2>&1 ||
        { apt_get update && apt_get install "$@"; } >"$log" 2>&1 ||
        fail_with_log "cannot install $server: apt-get install $* failed" "$log"
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=600 --no-install-recommends "$@"
}
