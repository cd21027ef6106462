#!/usr/bin/env bash
# Makes a Debian root with Node, PostgreSQL and Caddy: make-root.sh FOLDER. It stands in for the three images that the
# Containerfile and compose.yaml name, on machines that reach no image registry. Packages come from where this machine
# gets its own.
set -euo pipefail
root=$1
here=$(dirname "$0")
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 'debian/*$')
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

debootstrap --variant=minbase --include=ca-certificates,postgresql,caddy "$suite" "$root" "$mirror"
# The images bring no database and no certificates of their own.
rm -rf "$root"/var/lib/postgresql/*/main "$root"/var/cache/apt/archives/*.deb
# Whatever this machine trusts, builds in the image have to trust too.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
install -D "$(command -v node | xargs readlink -f)" "$root/usr/local/bin/node"
npm_folder=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
mkdir -p "$root/usr/local/lib/node_modules"
cp -a "$npm_folder" "$root/usr/local/lib/node_modules/"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
chroot "$root" useradd --uid 1000 --create-home node
install -m 755 "$here/postgres.sh" "$root/usr/local/bin/postgres-entrypoint"
