# shellcheck shell=bash
# Folders, ports and processes: what the servers have in common. Used by tests/services, which sets DIR and SERVERS.
#   DIR/ports/NAME   a port, kept for as long as DIR is
#   DIR/pids/NAME    a process: its id, and its start time, which tells it from a later one with the same id
#   DIR/logs/NAME.log (and NAME.log.1, of the start before)

HOST=127.0.0.1
# Linux gives an outgoing connection a port from 32768 on: below that, none can take a server's port while it is down.
# A Redis Cluster node takes a second port, 10000 above its own.
PORT_MIN=10000
PORTS=10000
BUS_OFFSET=10000
# A loaded machine with two cores is slow at starting two JVMs.
START_SECONDS_MAX=180
STOP_SECONDS_MAX=30

make_folders() { # DIR
    mkdir -p "$1"/{ports,pids,logs} || fail "cannot make $1"
    # PostgreSQL runs as another user then, and must be able to pass.
    [ "$(id -u)" != 0 ] || chmod a+x "$1"
}

# ---- ports

listening() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; } # PORT

port() { cat "$DIR/ports/$1"; } # NAME

# Gives NAME a port for good. The list in SERVERS keeps two folders from the same one, also while a server is down.
claim_port() { # NAME
    local port
    [ ! -s "$DIR/ports/$1" ] || return 0
    mkdir -p "$SERVERS" 2>/dev/null || fail "cannot make $SERVERS: set XDG_CACHE_HOME to a folder that can be written"
    exec 8>>"$SERVERS/ports.lock"
    flock 8
    forget_lost_ports
    while
        port=$((PORT_MIN + RANDOM % PORTS))
        grep -q "^$port " "$SERVERS/ports" || listening "$port" || listening $((port + BUS_OFFSET))
    do :; done
    echo "$port" >"$DIR/ports/$1"
    echo "$port $DIR/ports/$1" >>"$SERVERS/ports"
    exec 8>&-
}

# A folder that was removed, even if it was made again, has given its ports back.
forget_lost_ports() {
    local port file now
    touch "$SERVERS/ports"
    while read -r port file; do
        { read -r now <"$file"; } 2>/dev/null || continue
        [ "$now" != "$port" ] || echo "$port $file"
    done <"$SERVERS/ports" >"$SERVERS/ports.draft"
    mv "$SERVERS/ports.draft" "$SERVERS/ports"
}

# ---- processes

# Prints when a process was started, in ticks since the machine was; fails if it has ended.
born() { # PID
    local stat fields
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    # The name before the last bracket may hold anything. A zombie has ended.
    read -r -a fields <<<"${stat##*) }"
    [ "${fields[0]}" != Z ] && echo "${fields[19]}"
}

same_process() { # PID START
    local now
    now=$(born "$1") && [ "$now" = "$2" ]
}

# Prints the id of a process that runs.
alive() { # PROCESS
    local pid start
    { read -r pid start <"$DIR/pids/$1"; } 2>/dev/null || return 1
    same_process "$pid" "$start" && echo "$pid"
}

children() { # PID
    local stat pid fields
    for stat in /proc/[0-9]*/stat; do
        { read -r pid stat <"$stat"; } 2>/dev/null || continue
        read -r -a fields <<<"${stat##*) }"
        [ "${fields[1]}" != "$1" ] || echo "$pid"
    done
}

# Runs a command in a session of its own, which outlives this script and its terminal.
spawn() { # PROCESS COMMAND…
    local process=$1 log=$DIR/logs/$1.log fd
    shift
    [ ! -s "$log" ] || mv "$log" "$log.1"
    (
        # A server must hold neither our locks nor a pipe of whoever called us and waits for its end.
        for fd in /proc/self/fd/*; do
            fd=${fd##*/}
            [ "$fd" -le 2 ] || eval "exec $fd>&-"
        done
        exec setsid "$@"
    ) >"$log" 2>&1 </dev/null &
    echo "$! $(born $!)" >"$DIR/pids/$process"
}

# Waits until a command succeeds, for as long as the process runs. An answer counts only while it does: it might be from
# another server on the same port.
await() { # PROCESS COMMAND…
    local process=$1 deadline=$((SECONDS + START_SECONDS_MAX)) why=
    shift
    until "$@" >/dev/null 2>&1 && alive "$process" >/dev/null; do
        alive "$process" >/dev/null || why="$process ended as it was started"
        [ "$SECONDS" -lt "$deadline" ] || why="$process is not ready after $START_SECONDS_MAX s"
        [ -z "$why" ] || fail_with_log "$why" "$DIR/logs/$process.log"
        sleep 0.1
    done
}

fail_with_log() { # WHY LOG
    {
        echo "tests/services: $1. The end of $2:"
        tail -n 25 "$2" | sed 's/^/    /'
    } >&2
    exit 1
}

# Ends processes together, and waits until they are gone.
end_processes() { # TERM|KILL PROCESS…
    local signal=$1 process pid start deadline=$((SECONDS + STOP_SECONDS_MAX))
    local -A ending=()
    shift
    for process; do
        pid=$(alive "$process") || continue
        ending[$process]=$(<"$DIR/pids/$process")
        if [ "$signal" = KILL ]; then kill_whole "$process" "$pid"; else ask_to_end "$process" "$pid"; fi
    done
    for process in "${!ending[@]}"; do
        read -r pid start <<<"${ending[$process]}"
        while same_process "$pid" "$start"; do
            if [ "$SECONDS" -ge "$deadline" ]; then
                echo "tests/services: $process does not end within $STOP_SECONDS_MAX s: kill -9" >&2
                kill_whole "$process" "$pid"
                deadline=$((SECONDS + STOP_SECONDS_MAX))
            fi
            sleep 0.05
        done
        rm -f "$DIR/pids/$process"
    done
}

ask_to_end() { # PROCESS PID
    local signal=TERM
    # To PostgreSQL, TERM means to wait until every client has gone; INT sends them away.
    [ "$1" != postgres ] || signal=INT
    send "$signal" "$1" "$2"
}

send() { # SIGNAL PROCESS PID
    # It may have ended by itself.
    kill -s "$1" "$3" 2>/dev/null || ! alive "$2" >/dev/null || fail "may not end $2, process $3: another user's"
}

# A process with its children: a backend of PostgreSQL that outlived its parent would keep the next one from starting.
kill_whole() { # PROCESS PID
    local pid pids
    mapfile -t pids < <(children "$2")
    send KILL "$1" "$2"
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
        while born "$pid" >/dev/null; do sleep 0.02; done
    done
}
