# shellcheck shell=bash
# PostgreSQL, of the newest version that is installed. Its one user is a superuser, and needs no password.

postgres_bin() {
    local bin
    # Debian keeps them out of PATH.
    while read -r bin; do
        if [ -x "$bin/initdb" ] && [ -x "$bin/postgres" ] && [ -x "$bin/pg_isready" ]; then
            echo "$bin"
            return
        fi
    done < <(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV; tr : '\n' <<<"$PATH")
    return 1
}

has_postgres() { postgres_bin >/dev/null; }

get_postgres() {
    has_postgres || install_packages postgres postgresql
    has_postgres || fail "cannot install postgres: the package postgresql holds no server"
}

start_postgres() {
    local bin folder=$DIR/postgres as=() options=()
    bin=$(postgres_bin)
    claim_port postgres
    mkdir -p "$folder"
    [ "$(id -u)" != 0 ] || give_away "$folder"
    [ -d "$folder/data" ] || make_database "$folder"
    forget_zombie "$folder/data/postmaster.pid"
    # The last is what a kill would show; the others are for the end of the machine.
    [ "$DURABLE" = yes ] || options=(-c fsync=off -c full_page_writes=off -c synchronous_commit=off)
    spawn postgres "${as[@]}" "$bin/postgres" -D "$folder/data" -p "$(port postgres)" -c listen_addresses="$HOST" \
        -c unix_socket_directories= -c max_connections=300 -c wal_level=logical "${options[@]}"
    await postgres "$bin/pg_isready" -q -h "$HOST" -p "$(port postgres)"
}

# PostgreSQL refuses to run as root. Sets `as` of start_postgres: what to put before its commands.
give_away() { # FOLDER
    local user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    as=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups)
    chown "$user" "$1"
    "${as[@]}" test -w "$1" ||
        fail "postgres runs as the user $user, who cannot reach $1: take a folder that others may enter, as in /tmp"
}

# PostgreSQL takes a killed one for running until init has reaped it, which some inits of containers never do.
forget_zombie() { # PID_FILE
    local pid
    { read -r pid <"$1"; } 2>/dev/null || return 0
    if [ -e "/proc/$pid" ] && ! born "$pid" >/dev/null; then rm -f "$1"; fi
}

# In a draft, so that a cut-off initdb leaves nothing that looks like a database.
make_database() { # FOLDER
    rm -rf "$1/draft"
    (
        # initdb wants to come back to the folder that it began in.
        cd "$1" && exec "${as[@]}" "$bin/initdb" -D "$1/draft" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync
    ) >"$DIR/logs/initdb.log" 2>&1 || fail_with_log "postgres: initdb failed" "$DIR/logs/initdb.log"
    mv "$1/draft" "$1/data"
}

addresses_postgres() {
    [ ! -e "$DIR/ports/postgres" ] ||
        echo "export TEST_POSTGRES=postgres://postgres@$HOST:$(port postgres)/postgres"
}
