# shellcheck shell=bash
# Kafka and Cassandra: jars got by Maven, run on Java 17.
#   SERVERS/NAME-VERSION/lib/*.jar
#   SERVERS/NAME-VERSION/classes-JAVA.jsa   the classes that a start loads, as that Java wants them in memory

MAVEN_DEPENDENCY_PLUGIN=org.apache.maven.plugins:maven-dependency-plugin:3.6.1
# A test's server lives for a minute: start quickly (the first compiler only, the collector without threads of its own),
# and stay small. What is measured runs as it does elsewhere: TEST_SERVERS_COMPILE=all.
JVM_OPTIONS=(
    "-XX:TieredStopAtLevel=$([ "${TEST_SERVERS_COMPILE-}" = all ] && echo 4 || echo 1)" -XX:+UseSerialGC -XX:-UsePerfData -XX:+ExitOnOutOfMemoryError -Xss512k -Xms64m
    -Djava.awt.headless=true -Djava.net.preferIPv4Stack=true
)

folder_of() { # SERVER
    case $1 in
        kafka) echo "$SERVERS/kafka-$KAFKA_VERSION" ;;
        cassandra) echo "$SERVERS/cassandra-$CASSANDRA_VERSION" ;;
    esac
}

# Prints where Java 17 is: Cassandra 5.0 runs on no later one, Kafka 4 on no earlier one.
java_home() {
    local home candidates=("${JAVA_HOME:-}")
    ! home=$(command -v java) || candidates+=("$(dirname "$(dirname "$(readlink -f "$home")")")")
    for home in "${candidates[@]}" /usr/lib/jvm/*; do
        if [ -x "$home/bin/java" ] && [[ $(java_version "$home") == 17[.+]* ]]; then
            echo "$home"
            return
        fi
    done
    return 1
}

# From a file, as asking a JVM takes longer than all else that an installation with nothing to do does.
java_version() { sed -n 's/^JAVA_RUNTIME_VERSION="\(.*\)"/\1/p' "$1/release" 2>/dev/null; } # HOME

require_java() { # SERVER
    java_home || fail "$1 needs Java 17, and there is none in JAVA_HOME, in PATH or in /usr/lib/jvm" \
        "(Debian: apt-get install openjdk-17-jre-headless)"
}

# Gets jars with all that they need into a draft, which the second command completes; then moves it into place.
get_jars() { # SERVER COMPLETE GROUP:ARTIFACT:VERSION…
    local server=$1 complete=$2 draft folder
    shift 2
    folder=$(folder_of "$server")
    [ ! -d "$folder" ] || return 0
    command -v mvn >/dev/null || fail "$server needs mvn to be installed (Debian: apt-get install maven)"
    draft=$(mktemp -d "$SERVERS/draft.XXXXXX")
    pom "$@" >"$draft/pom.xml"
    mvn -B -q -C -f "$draft/pom.xml" -Dmaven.repo.local="$SERVERS/maven" \
        "$MAVEN_DEPENDENCY_PLUGIN:copy-dependencies" -DincludeScope=runtime -DoutputDirectory="$draft/lib" \
        >"$draft/log" 2>&1 || fail_with_log "cannot install $server: mvn did not get its jars" "$draft/log"
    # Native libraries of other systems.
    rm -f "$draft"/lib/*-{osx,windows}-*.jar
    "$complete" "$draft"
    mv -T "$draft" "$folder"
}

pom() { # GROUP:ARTIFACT:VERSION…
    local group artifact version
    echo '<project><modelVersion>4.0.0</modelVersion><packaging>pom</packaging>'
    echo '<groupId>freshet</groupId><artifactId>server</artifactId><version>1</version><dependencies>'
    while IFS=: read -r group artifact version; do
        echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId>"
        echo "<version>$version</version></dependency>"
    done < <(printf '%s\n' "$@")
    echo '</dependencies></project>'
}

class_path() { # FOLDER
    local jars=("$1"/lib/*.jar) IFS=:
    echo "${jars[*]}"
}

# ---- class archives

class_archive() { # SERVER
    local home
    home=$(java_home) && echo "$(folder_of "$1")/classes-$(java_version "$home").jsa"
}

has_class_archive() { # SERVER
    local archive
    archive=$(class_archive "$1") && [ -s "$archive" ]
}

# The JVM writes the archive as it ends. It names the jars by their paths, so this comes after the move into place;
# and it shows that the server runs.
get_class_archive() { # SERVER
    local archive
    ! has_class_archive "$1" || return 0
    archive=$(class_archive "$1")
    DIR=$(mktemp -d "$SERVERS/draft.XXXXXX")
    ARCHIVE_DRAFT=$DIR/classes.jsa
    # shellcheck disable=SC2064 # as it is now
    trap "end_processes KILL $1; rm -rf '$DIR'" EXIT
    make_folders "$DIR"
    choose_durability no
    "start_$1" "$1"
    end_processes TERM "$1"
    [ -s "$ARCHIVE_DRAFT" ] || fail_with_log "cannot install $1: no class archive was written" "$DIR/logs/$1.log"
    mv "$ARCHIVE_DRAFT" "$archive"
}

# Runs a server with the archive of its classes, or, for get_class_archive, with the order to write one.
spawn_java() { # SERVER ARGUMENT…
    local server=$1 home archive options=()
    shift
    home=$(require_java "$server")
    archive=$(class_archive "$server")
    if [ -n "${ARCHIVE_DRAFT-}" ]; then
        options+=("-XX:ArchiveClassesAtExit=$ARCHIVE_DRAFT")
    elif [ -s "$archive" ]; then
        options+=("-XX:SharedArchiveFile=$archive")
    fi
    spawn "$server" "$home/bin/java" "${JVM_OPTIONS[@]}" "${options[@]}" \
        -cp "$(class_path "$(folder_of "$server")")" "$@"
}
