#!/bin/sh
# Installs the gateway, its user and its volume into a root file system: install.sh BINARY ROOT. A step of the
# Dockerfile. The user id is fixed, so that files on the host can be given to it.
set -eu
binary=$1 root=${2%/}
id=10001
# The binary may be installed already.
place=$root/usr/local/bin/switchboard
[ "$binary" -ef "$place" ] || install -D -m 0755 "$binary" "$place"
mkdir -p "$root/etc"
echo "switchboard:x:$id:" >>"$root/etc/group"
echo "switchboard:x:$id:$id:Switchboard:/data:/usr/sbin/nologin" >>"$root/etc/passwd"
install -d -m 0700 "$root/data"
[ "$(id -u)" -ne 0 ] || chown "$id:$id" "$root/data"
