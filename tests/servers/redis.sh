# shellcheck shell=bash
# Redis: one server (redis-single) with a plain and a TLS port, and a Cluster of three masters (redis-node-1, -2, -3).

has_redis() { command -v redis-server >/dev/null && command -v redis-cli >/dev/null && command -v openssl >/dev/null; }

get_redis() {
    has_redis || install_packages redis redis-server redis-tools openssl
    has_redis || fail "cannot install redis: the packages hold no redis-server, redis-cli or openssl"
}

start_redis() { # PROCESS…
    local process
    for process; do
        claim_port "$process"
        case $process in
            redis-single) spawn_single ;;
            *) spawn_node "$process" ;;
        esac
    done
    for process; do
        await "$process" redis_is_ready "$process"
    done
    settle_cluster
}

redis_cli() { redis-cli -h "$HOST" -p "$(port "$1")" "${@:2}"; } # PROCESS COMMAND…

redis_is_ready() { [ "$(redis_cli "$1" ping)" = PONG ]; } # PROCESS

spawn_redis() { # PROCESS OPTION…
    local process=$1 persistence
    shift
    # A year from now: nothing is written while it runs, and yet a stop, unlike a kill, writes all of it.
    persistence=(--save 31536000 1 --appendonly no)
    [ "$DURABLE" = no ] || persistence=(--save '' --appendonly yes --appendfsync always)
    mkdir -p "$DIR/redis/$process"
    spawn "$process" redis-server --bind "$HOST" --port "$(port "$process")" --dir "$DIR/redis/$process" \
        --daemonize no "${persistence[@]}" "$@"
}

spawn_single() {
    [ -s "$DIR/tls/server.pem" ] || make_certificates
    claim_port redis-tls
    spawn_redis redis-single --tls-port "$(port redis-tls)" --tls-auth-clients no --tls-ca-cert-file "$DIR/tls/ca.pem" \
        --tls-cert-file "$DIR/tls/server.pem" --tls-key-file "$DIR/tls/server.key"
}

# A certificate for the loopback addresses, and the authority that a client is to trust. The names of the sections are
# those of the extensions; the settings of the machine's own openssl.cnf stay out.
make_certificates() {
    local tls=$DIR/tls
    mkdir -p "$tls"
    cat >"$tls/openssl.cnf" <<'CONFIG'
[req]
distinguished_name = name
prompt = no
[name]
O = Freshet tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
CONFIG
    (
        cd "$tls"
        umask 077
        new_key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config openssl.cnf)
        openssl req -x509 "${new_key[@]}" -extensions authority -subj '/O=Freshet tests/CN=authority' -days 3650 \
            -keyout ca.key -out ca.pem
        openssl req -new "${new_key[@]}" -subj '/O=Freshet tests/CN=localhost' -keyout server.key -out server.csr
        # The certificate last, and whole: it is what spawn_single looks for.
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -extfile openssl.cnf \
            -extensions server -out server.draft
        mv server.draft server.pem
        chmod a+r ca.pem
    ) >"$DIR/logs/openssl.log" 2>&1 || fail_with_log "redis: openssl made no certificates" "$DIR/logs/openssl.log"
}

# ---- the Cluster

spawn_node() { # PROCESS
    # What is left of a Cluster that was not finished would keep the next one from being made.
    [ -e "$DIR/redis/cluster" ] || rm -rf "$DIR/redis/$1"
    spawn_redis "$1" --cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 2000
}

# Makes a Cluster of the three nodes when all run for the first time; later they find each other by what they wrote.
settle_cluster() {
    local node addresses=()
    for node in redis-node-{1,2,3}; do
        alive "$node" >/dev/null || return 0
        addresses+=("$HOST:$(port "$node")")
    done
    if [ ! -e "$DIR/redis/cluster" ]; then
        # It waits for ever for a node that is gone.
        timeout 60 redis-cli --cluster create "${addresses[@]}" --cluster-replicas 0 --cluster-yes \
            >"$DIR/logs/redis-cluster.log" 2>&1 ||
            fail_with_log "redis: no Cluster was made" "$DIR/logs/redis-cluster.log"
        touch "$DIR/redis/cluster"
    fi
    for node in redis-node-{1,2,3}; do
        await "$node" cluster_is_whole "$node"
    done
}

cluster_is_whole() { redis_cli "$1" cluster info | grep -q '^cluster_state:ok'; } # NODE

addresses_redis() {
    local one two three
    if [ -e "$DIR/ports/redis-single" ]; then
        echo "export TEST_REDIS=redis://$HOST:$(port redis-single)"
        echo "export TEST_REDIS_TLS=rediss://$HOST:$(port redis-tls)"
        printf 'export TEST_REDIS_CA=%q\n' "$DIR/tls/ca.pem"
    fi
    if [ -e "$DIR/redis/cluster" ]; then
        one=$HOST:$(port redis-node-1) two=$HOST:$(port redis-node-2) three=$HOST:$(port redis-node-3)
        echo "export TEST_REDIS_CLUSTER=redis-cluster://$one,$two,$three"
    fi
}
