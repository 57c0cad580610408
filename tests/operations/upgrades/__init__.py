"""Tests of upgrades, migrations, versions and backups."""
