-- What the service may do, as gatebell_owner, in the database gatebell: read and write rows.
-- It may not make, change or drop a table, an index, a function or a trigger.

GRANT CONNECT ON DATABASE gatebell TO gatebell_service;
GRANT USAGE ON SCHEMA public TO gatebell_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO gatebell_service;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public
  GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO gatebell_service;
