-- Privileges of the service. Run this script as gatebell_owner in the database gatebell.
-- The service can read and write rows. It cannot create, change or drop tables, indexes, functions or
-- triggers.

GRANT CONNECT ON DATABASE gatebell TO gatebell_service;
GRANT USAGE ON SCHEMA public TO gatebell_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gatebell_service;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO gatebell_service;
