#!/bin/sh
#
# Ansible managed
#
# apt asks this for a proxy. While the cache does not answer, apt downloads without it.
if timeout 2 bash -c ': < /dev/tcp/192.168.1.103/3142' 2>/dev/null; then
    echo "http://192.168.1.103:3142"
else
    echo DIRECT
fi
