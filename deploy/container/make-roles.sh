#!/bin/sh
# Run by the image of Postgres when the database is made: the two roles of deploy/postgres.
set -eu

psql --username postgres --set ON_ERROR_STOP=1 \
    --set owner_password="$(cat /run/secrets/owner_password)" \
    --set service_password="$(cat /run/secrets/service_password)" \
    --file /sql/roles.sql
