#!/bin/sh
# Starts a program in the image's file tree $1 as a container engine would, with the folder $2 at
# /run/secrets: namespaces of mounts and processes of its own, a read-only root, /tmp in memory, user
# 65534, no capability, no new privileges. $3 is the working folder; the rest is the command, which
# is process 1. Needs root.
set -eu
exec unshare --mount --pid --fork --kill-child -- sh -euc '
tree=$1 secrets=$2 folder=$3
shift 3
mount --make-rprivate /
mount --bind "$tree" "$tree"
mount -o remount,bind,ro,nosuid "$tree"
mount --bind "$secrets" "$tree/run/secrets"
mount -t tmpfs -o mode=1777,nosuid,nodev,size=64m tmpfs "$tree/tmp"
mount -t tmpfs -o mode=755,size=64k tmpfs "$tree/dev"
for device in null zero random urandom; do
  touch "$tree/dev/$device"
  mount --bind "/dev/$device" "$tree/dev/$device"
done
mount -t proc -o nosuid,nodev,noexec proc "$tree/proc"
exec setpriv --no-new-privs --clear-groups --inh-caps=-all \
  --bounding-set=-all,+sys_chroot,+setuid,+setgid \
  unshare --root="$tree" --wd="$folder" --setgid=65534 --setuid=65534 -- "$@"
' sh "$@"
