-- Creates the database and two roles. gatebell_owner owns all tables and runs the migrations.
-- gatebell_service reads and writes rows.
--
-- Run this script as a superuser before the first migration:
--   psql --set=owner_password=… --set=service_password=… --file=deploy/postgres/roles.sql

CREATE ROLE gatebell_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE gatebell_service LOGIN PASSWORD :'service_password';
CREATE DATABASE gatebell OWNER gatebell_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE gatebell FROM PUBLIC;
-- Defaults for the service's sessions behind a pooler (docs/scaling-out.md). Without a pooler, the
-- service sets these values itself.
ALTER ROLE gatebell_service IN DATABASE gatebell SET statement_timeout = '15s';
ALTER ROLE gatebell_service IN DATABASE gatebell SET timezone = 'UTC';
ALTER ROLE gatebell_service IN DATABASE gatebell SET client_connection_check_interval = '1s';
-- If Postgres supports lz4, use it, because it compresses the bodies of alerts much faster.
SELECT 'ALTER ROLE gatebell_service IN DATABASE gatebell SET default_toast_compression = lz4'
  FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals) \gexec
\connect gatebell

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO gatebell_owner;
GRANT USAGE ON SCHEMA public TO gatebell_service;

SET ROLE gatebell_owner;
\ir grants.sql
