#!/bin/sh
#
# Ansible managed
#
# start, reload or stop the VPN. The private key is made here once and never leaves this machine.
set -eu
umask 077
link=stead-vpn
key=/etc/slurmstead/vpn.key

case $1 in
# The interface may have been deleted, so a reload does the same.
start | reload)
    if ! [ -s "$key" ]; then
        wg genkey > "$key.new"
        sync "$key.new"
        mv "$key.new" "$key"
    fi
    wg pubkey < "$key" > /run/slurmstead-vpn.pub
    chmod 644 /run/slurmstead-vpn.pub
    # Kernels without the module can have wireguard-go (Debian's package of that name).
    ip link show "$link" >/dev/null 2>&1 || ip link add "$link" type wireguard 2>/dev/null || wireguard-go "$link"
    # First the table: no packet of a peer passes before it.
    nft --file /etc/slurmstead/vpn.nft
    { printf '[Interface]\nPrivateKey = '; cat "$key"; cat /etc/slurmstead/vpn.conf; } | wg syncconf "$link" /dev/stdin
    ip address flush dev "$link"
    ip address add "10.79.0.1/24" dev "$link"
    ip link set "$link" up
    ;;
stop)
    ip link delete "$link" 2>/dev/null || :
    nft delete table inet slurmstead_vpn 2>/dev/null || :
    ;;
esac
