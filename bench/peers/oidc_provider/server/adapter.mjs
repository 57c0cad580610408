// The storage of oidc-provider in one Postgres table. Each connection prepares a statement once.
import pg from 'pg';

export const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4 });

export async function createTable() {
  await pool.query(`
    CREATE TABLE IF NOT EXISTS kept (
      model text NOT NULL, id text NOT NULL, payload jsonb NOT NULL, grant_id text, user_code text,
      uid text, expires_at timestamptz, consumed_at timestamptz, PRIMARY KEY (model, id))`);
  for (const column of ['grant_id', 'user_code', 'uid']) {
    await pool.query(
      `CREATE INDEX IF NOT EXISTS kept_${column} ON kept (${column}) WHERE ${column} IS NOT NULL`,
    );
  }
}

const run = (name, text, values) => pool.query({ name, text, values });

const FOUND = `SELECT payload, extract(epoch FROM consumed_at)::int AS consumed FROM kept
  WHERE model = $1 AND (expires_at IS NULL OR expires_at > now()) AND`;

function payloadOf({ rows: [row] }) {
  if (!row) return undefined;
  return row.consumed ? { ...row.payload, consumed: row.consumed } : row.payload;
}

export class PostgresAdapter {
  constructor(model) {
    this.model = model;
  }

  async upsert(id, payload, expiresIn) {
    const expiresAt = expiresIn ? new Date(Date.now() + expiresIn * 1000) : null;
    await run(
      'upsert',
      `INSERT INTO kept (model, id, payload, grant_id, user_code, uid, expires_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload,
         grant_id = excluded.grant_id, user_code = excluded.user_code, uid = excluded.uid,
         expires_at = excluded.expires_at`,
      [this.model, id, payload, payload.grantId, payload.userCode, payload.uid, expiresAt],
    );
  }

  async find(id) {
    return payloadOf(await run('find', `${FOUND} id = $2`, [this.model, id]));
  }

  async findByUserCode(code) {
    return payloadOf(await run('find_user_code', `${FOUND} user_code = $2`, [this.model, code]));
  }

  async findByUid(uid) {
    return payloadOf(await run('find_uid', `${FOUND} uid = $2`, [this.model, uid]));
  }

  async consume(id) {
    await run(
      'consume',
      'UPDATE kept SET consumed_at = now() WHERE model = $1 AND id = $2',
      [this.model, id],
    );
  }

  async destroy(id) {
    await run('destroy', 'DELETE FROM kept WHERE model = $1 AND id = $2', [this.model, id]);
  }

  async revokeByGrantId(grantId) {
    await run('revoke', 'DELETE FROM kept WHERE model = $1 AND grant_id = $2', [this.model, grantId]);
  }
}
