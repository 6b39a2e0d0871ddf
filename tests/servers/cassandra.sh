# shellcheck shell=bash
# Cassandra: one node, which owns the whole ring.

CASSANDRA_VERSION=5.0.9
# What Cassandra reaches into the JDK for; its own start script opens the same.
CASSANDRA_EXPORTS=(
    java.base/{jdk.internal.misc,java.lang.ref,java.lang.reflect,sun.nio.ch}
    java.management.rmi/com.sun.jmx.remote.internal.rmi java.rmi/sun.rmi.{registry,server} java.sql/java.sql
    jdk.attach/sun.tools.attach jdk.compiler/com.sun.tools.javac.file jdk.unsupported/sun.misc
)
CASSANDRA_OPENS=(
    java.base/java.{io,math,net} java.base/java.lang{,.module,.reflect} java.base/java.nio{,.charset,.file.spi}
    java.base/java.util{,.concurrent,.concurrent.atomic,.concurrent.locks}
    java.base/jdk.internal.{loader,math,misc,module,ref,reflect,util.jar,vm} java.base/sun.nio.ch
    java.rmi/sun.rmi.transport.tcp jdk.compiler/com.sun.tools.javac jdk.management/com.sun.management.internal
)

has_cassandra() { [ -d "$(folder_of cassandra)" ]; }

get_cassandra() {
    require_java cassandra >/dev/null
    get_jars cassandra true "org.apache.cassandra:cassandra-all:$CASSANDRA_VERSION"
    get_class_archive cassandra
}

start_cassandra() {
    local folder=$DIR/cassandra options=()
    claim_port cassandra
    claim_port cassandra-storage
    mkdir -p "$folder"/{data,tmp}
    cassandra_yaml "$folder/data" >"$folder/cassandra.yaml"
    cassandra_logback >"$folder/logback.xml"
    options=("${CASSANDRA_EXPORTS[@]/#/--add-exports=}" "${CASSANDRA_OPENS[@]/#/--add-opens=}")
    options=("${options[@]/%/=ALL-UNNAMED}")
    # Tables of the system are not flushed at every change of a schema, of which tests make many.
    [ "$DURABLE" = yes ] ||
        options+=(-Dcassandra.unsafesystem=true -Dcassandra.test.flush_local_schema_changes=false)
    # A lone node has nobody to wait for, neither at its start nor at its end.
    # Each test has a keyspace of its own, and each of its tables takes about a megabyte for as long as the server lives.
    spawn_java cassandra -Xmx1536m -XX:MaxDirectMemorySize=256m "${options[@]}" \
        -Djdk.attach.allowAttachSelf=true -Djava.security.manager=allow -Dio.netty.tryReflectionSetAccessible=true \
        -Djava.io.tmpdir="$folder/tmp" -Djna.tmpdir="$folder/tmp" \
        -Dlogback.configurationFile="file://$folder/logback.xml" \
        -Dcassandra.config="file://$folder/cassandra.yaml" -Dcassandra.storagedir="$folder/data" \
        -Dcassandra.logdir="$folder" -Dcassandra-foreground=yes -Dcassandra.available_processors=2 \
        -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=0 -Dcassandra.load_ring_state=false \
        -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra.shutdown_announce_in_ms=0 \
        -Dcassandra.test.messagingService.nonGracefulShutdown=true -Dcassandra.memtable.row_overhead_size=180 \
        org.apache.cassandra.service.CassandraDaemon
    await cassandra cassandra_is_ready
}

# Sends OPTIONS, of version 4 of the protocol; the answer, SUPPORTED, begins with 0x84.
cassandra_is_ready() (
    exec 3<>"/dev/tcp/$HOST/$(port cassandra)"
    printf '\x04\0\0\0\x05\0\0\0\0' >&3
    [[ $(timeout 3 head -c 1 <&3 | od -An -tx1) == *84* ]]
)

cassandra_yaml() { # DATA
    # By default a write is acknowledged up to 10 s before the commit log holds it.
    local sync=(periodic 'commitlog_sync_period: 10s')
    [ "$DURABLE" = no ] || sync=(batch '')
    cat <<YAML
cluster_name: freshet-tests
num_tokens: 1
initial_token: 0
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
auto_bootstrap: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters: [ { seeds: "$HOST:$(port cassandra-storage)" } ]
listen_address: $HOST
storage_port: $(port cassandra-storage)
rpc_address: $HOST
native_transport_port: $(port cassandra)
start_native_transport: true

data_file_directories: [ "$1/data" ]
commitlog_directory: "$1/commitlog"
saved_caches_directory: "$1/saved_caches"
hints_directory: "$1/hints"
cdc_raw_directory: "$1/cdc_raw"
commitlog_sync: ${sync[0]}
${sync[1]}
commitlog_segment_size: 8MiB
commitlog_total_space: 64MiB
disk_failure_policy: stop
auto_snapshot: false
hinted_handoff_enabled: false

# Memory and threads for a small machine.
memtable_heap_space: 64MiB
memtable_offheap_space: 32MiB
file_cache_size: 32MiB
networking_cache_size: 16MiB
key_cache_size: 4MiB
counter_cache_size: 0MiB
row_cache_size: 0MiB
concurrent_reads: 8
concurrent_writes: 8
concurrent_counter_writes: 4
concurrent_compactors: 1
native_transport_max_threads: 16

# Patient, as tests share the machine with a compiler.
request_timeout: 20s
read_request_timeout: 10s
range_request_timeout: 20s
write_request_timeout: 10s
cas_contention_timeout: 5s
truncate_request_timeout: 60s
YAML
}

cassandra_logback() {
    cat <<'XML'
<configuration scan="false">
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
</configuration>
XML
}

addresses_cassandra() {
    [ ! -e "$DIR/ports/cassandra" ] || echo "export TEST_CASSANDRA=scylla://$HOST:$(port cassandra)"
}
