-- What the service may do, as gatebell_owner, in the database gatebell: read and write rows.
-- It may not make, change or drop a table, an index, a function or a trigger.

GRANT CONNECT ON DATABASE gatebell TO gatebell_service;
CREATE SCHEMA IF NOT EXISTS gatebell_queue;
GRANT USAGE ON SCHEMA public, gatebell_queue TO gatebell_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, gatebell_queue TO gatebell_service;
GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public, gatebell_queue TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public, gatebell_queue
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO gatebell_service;
ALTER DEFAULT PRIVILEGES IN SCHEMA public, gatebell_queue
  GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO gatebell_service;
