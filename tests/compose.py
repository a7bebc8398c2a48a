#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Check the shape of examples/containers/compose.yaml, and print its services.

A line of each service: NAME, the folder, the environment as NAME=VALUE and the command, with tabs
between; tests/examples.sh runs them. Sharing needs one folder, one user, one socket in that folder,
and an xmemd for which the other services wait. Nothing else may be shared.
"""
import sys

import yaml


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        compose = yaml.safe_load(file)
    services = compose["services"]
    assert set(compose) == {"x-member", "services", "volumes"}, set(compose)
    assert set(services) == {"xmemd", "producer", "consumer"}, set(services)
    for name, service in services.items():
        (volume,) = service["volumes"]
        source, folder = volume.split(":")
        environment = service["environment"]
        assert source in compose["volumes"], f"{name}: no volume {source}"
        assert environment["XMEM_SOCKET"].rpartition("/")[0] == folder, f"{name}: {environment}"
        assert service["image"] == "xmem" and service["user"] == "1000:1000", f"{name}: {service}"
        assert service["network_mode"] == "none" and not {"pid", "ipc"} & set(service), name
        assert service["command"][0] == name, f"{name} runs {service['command']}"
        if name == "xmemd":
            assert service["healthcheck"]["test"][-1] == environment["XMEM_SOCKET"], name
        else:
            assert service["depends_on"] == {"xmemd": {"condition": "service_healthy"}}, name
        print(name, folder, *(f"{key}={value}" for key, value in environment.items()),
              *service["command"], sep="\t")


main()
