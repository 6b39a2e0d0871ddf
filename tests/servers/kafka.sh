# shellcheck shell=bash
# Kafka: one node, both broker and controller (KRaft). It acknowledges what the kernel holds, which outlives a kill of
# the process, so --durable changes nothing here.

KAFKA_VERSION=4.3.1
# Without a logger of its own Kafka is silent.
SLF4J_VERSION=1.7.36
KAFKA_CLUSTER_ID=ZnJlc2hldC10ZXN0cy1rYQ

has_kafka() { [ -d "$(folder_of kafka)" ]; }

get_kafka() {
    require_java kafka >/dev/null
    get_jars kafka format_kafka "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" "org.slf4j:slf4j-simple:$SLF4J_VERSION"
    get_class_archive kafka
}

# Formatting a data folder takes a JVM of its own; the result names no port, so every start takes a copy of this one.
format_kafka() { # FOLDER
    kafka_properties "$1/formatted" 9092 9093 9094 9095 >"$1/format.properties"
    "$(java_home)/bin/java" "${JVM_OPTIONS[@]}" -cp "$(class_path "$1")" kafka.tools.StorageTool format \
        --cluster-id "$KAFKA_CLUSTER_ID" --config "$1/format.properties" >"$1/log" 2>&1 ||
        fail_with_log "cannot install kafka: its data folder could not be formatted" "$1/log"
}

start_kafka() {
    local folder=$DIR/kafka name
    for name in kafka kafka-controller kafka-behind-proxy kafka-proxy; do
        claim_port "$name"
    done
    mkdir -p "$folder"
    kafka_properties "$folder/data" "$(port kafka)" "$(port kafka-controller)" "$(port kafka-behind-proxy)" \
        "$(port kafka-proxy)" >"$folder/server.properties"
    if [ ! -d "$folder/data" ]; then
        rm -rf "$folder/draft"
        cp -r "$(folder_of kafka)/formatted" "$folder/draft"
        mv "$folder/draft" "$folder/data"
    fi
    spawn_java kafka -Xmx384m -Dorg.slf4j.simpleLogger.showDateTime=true \
        -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS kafka.Kafka "$folder/server.properties"
    await kafka kafka_is_ready
}

# Its port is open long before the broker may lead a partition.
kafka_is_ready() { grep -q 'Kafka Server started' "$DIR/logs/kafka.log"; }

# A broker tells its clients where to go. Those that come by the listener PROXIED are sent to the proxy's port, where a
# test may listen and pass on what it likes.
kafka_properties() { # DATA PORT CONTROLLER_PORT PORT_BEHIND_PROXY PROXY_PORT
    cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@$HOST:$3
listeners=PLAINTEXT://$HOST:$2,CONTROLLER://$HOST:$3,PROXIED://$HOST:$4
advertised.listeners=PLAINTEXT://$HOST:$2,PROXIED://$HOST:$5
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT
log.dirs=$1

# A topic that nobody made is a mistake that a test must see.
auto.create.topics.enable=false
default.replication.factor=1

# One node holds all of its own topics, and opens few partitions at a start.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1

# Groups come together in parts of a second, by the classic and by the consumer protocol (there, 5 s by default).
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500

# A killed broker may come back once its last session has ended (9 s by default).
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# Otherwise a stop is like a kill to the next start.
controlled.shutdown.enable=true

# Memory and threads for a small machine.
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=2
num.io.threads=4
background.threads=2
PROPERTIES
}

addresses_kafka() {
    [ -e "$DIR/ports/kafka" ] || return 0
    echo "export TEST_KAFKA=kafka://$HOST:$(port kafka)"
    echo "export TEST_KAFKA_PROXY=$HOST:$(port kafka-proxy)"
    echo "export TEST_KAFKA_BEHIND_PROXY=$HOST:$(port kafka-behind-proxy)"
}
