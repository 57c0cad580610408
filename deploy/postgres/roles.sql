-- Two roles: gatebell_owner migrates and owns everything, gatebell_service works with the rows.
--
-- As a superuser, before the first migration:
--   psql --set=owner_password=… --set=service_password=… --file=deploy/postgres/roles.sql

CREATE ROLE gatebell_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE gatebell_service LOGIN PASSWORD :'service_password';
CREATE DATABASE gatebell OWNER gatebell_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE gatebell FROM PUBLIC;
-- What sessions of the service begin with behind a pooler (docs/scaling-out.md); without one it says
-- so itself.
ALTER ROLE gatebell_service IN DATABASE gatebell SET statement_timeout = '15s';
ALTER ROLE gatebell_service IN DATABASE gatebell SET timezone = 'UTC';
ALTER ROLE gatebell_service IN DATABASE gatebell SET client_connection_check_interval = '1s';
-- Where Postgres has lz4: compress bodies of alerts in a fraction of the time.
SELECT 'ALTER ROLE gatebell_service IN DATABASE gatebell SET default_toast_compression = lz4'
  FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals) \gexec
\connect gatebell

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO gatebell_owner;
GRANT USAGE ON SCHEMA public TO gatebell_service;

SET ROLE gatebell_owner;
\ir grants.sql
