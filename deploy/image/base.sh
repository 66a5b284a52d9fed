#!/bin/sh
# Unpacks the Debian packages of packages.txt, without their installation scripts, into the folder
# $1: the C and C++ libraries that Node and uWebSockets.js load, certificates, and tini. There is no
# shell and no package manager in it. Runs in the Dockerfile and in `npm run image:tree` alike.
set -eu
target=$1
list=$(cd "$(dirname "$0")" && pwd)/packages.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# apt downloads as a user of its own, which must be able to write there.
chmod 777 "$work"
cd "$work"
apt-cache show libc6 >/dev/null 2>&1 || apt-get update -qq
xargs apt-get download -qq <"$list"
mkdir -p "$target"
for package in *.deb; do
  dpkg-deb --fsys-tarfile "$package" >"$work/files.tar"
  tar -x -C "$target" --no-same-owner \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
    --exclude='./usr/share/lintian/*' --exclude='./usr/lib/*/gconv/*' --exclude='./usr/lib/*/audit/*' \
    --exclude='./usr/share/info/*' --exclude='./usr/share/gcc/*' --exclude='./usr/share/gdb/*' \
    -f "$work/files.tar"
  # Scanners of images find the packages there.
  mkdir -p "$target/var/lib/dpkg/status.d"
  dpkg-deb --field "$package" >"$target/var/lib/dpkg/status.d/$(dpkg-deb --field "$package" Package)"
done
# What the installation scripts would have made.
find "$target/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat \
  >"$work/ca-certificates.crt"
mkdir -p "$target/etc/ssl/certs" "$target/proc" "$target/dev" "$target/tmp" "$target/run/secrets"
cp "$work/ca-certificates.crt" "$target/etc/ssl/certs/ca-certificates.crt"
printf 'root:x:0:0:root:/:/nonexistent\nnobody:x:65534:65534:nobody:/nonexistent:/nonexistent\n' \
  >"$target/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$target/etc/group"
# A new volume takes the mode of the folder that it is mounted on: nobody writes exports there.
mkdir -p "$target/var/lib/pillole/exports"
chmod 1777 "$target/tmp" "$target/var/lib/pillole/exports"
# One date for every file, so that two builds of equal packages are equal.
find "$target" -exec touch --no-dereference --date=@0 {} +
