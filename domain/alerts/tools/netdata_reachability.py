"""Rules for recognizing and reading Netdata messages about unreachable nodes."""

from dataclasses import replace

from domain.alerts.tools import netdata

TOOL = replace(
    netdata.TOOL, name="Netdata (reachability)", marks="message url host severity status.reachable"
)
