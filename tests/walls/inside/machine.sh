#!/bin/sh
# The first program of a machine within this one, whose file system it sees and cannot change: <command…>.
# Nothing is there but what is mounted here: control groups of version 2 only, with every controller.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/tmp /dev/shm
chmod 1777 /run/tmp
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
"$@" || echo "ended with $?"
poweroff -f || halt -f
