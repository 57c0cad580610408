#!/bin/sh
# Create the database and its two roles with deploy/postgres/roles.sql. The Postgres image runs this
# script when it initializes an empty data directory.
set -eu

psql --username postgres --set ON_ERROR_STOP=1 \
    --set owner_password="$(cat /run/secrets/owner_password)" \
    --set service_password="$(cat /run/secrets/service_password)" \
    --file /sql/roles.sql
