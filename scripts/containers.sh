#!/bin/sh
# Builds the container files and runs them, on a Debian machine that has no engine and cannot fetch an image: brings Docker's
# from the packages, without a network of its own, and an image with Python made of packages, and removes both again.
# Meant for root. Takes minutes.
set -eu
cd -- "$(dirname -- "$0")/.."

[ "$(id -u)" = 0 ] || { echo "scripts/containers.sh has to be run by root" >&2; exit 2; }
missing=""
command -v dockerd >/dev/null || missing="$missing docker.io"
command -v docker >/dev/null || missing="$missing docker-cli"
command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
[ -z "$missing" ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing

work=$(mktemp -d)
finish() {
    if [ -s "$work/pid" ]; then
        daemon=$(cat "$work/pid")
        kill "$daemon"
        while kill -0 "$daemon" 2>/dev/null; do sleep 0.2; done
    fi
    umount "$work/exec/netns/default" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

export DOCKER_HOST="unix://$work/socket"
dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" --host "$DOCKER_HOST" \
    --iptables=false --ip6tables=false --bridge=none --ip-forward=false --ip-masq=false >"$work/log" 2>&1 &
tries=0
until docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] || { cat "$work/log" >&2; exit 1; }
    sleep 0.2
done

# The Debian that Python's own image is made of.
mkdir "$work/base"
mmdebstrap --variant=minbase --include=ca-certificates,python3,python3-venv,python3-pip --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg trixie "$work/base/root.tar"
# With whom this machine trusts: an index may have a certificate of its own.
cp /etc/ssl/certs/ca-certificates.crt "$work/base/"
cat >"$work/base/Dockerfile" <<'END'
FROM scratch
ADD root.tar /
COPY ca-certificates.crt /etc/ssl/certs/
RUN ln -s /usr/bin/python3 /usr/local/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
END
DOCKER_BUILDKIT=0 docker build --quiet --network host --tag pyexec-test-python "$work/base"

CONTAINER_ENGINE=docker PYTHON_IMAGE=pyexec-test-python make containers
