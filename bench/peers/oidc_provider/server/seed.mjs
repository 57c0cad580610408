// Stores tokens and codes with the library's own models, and writes them to a file.
import { writeFile } from 'node:fs/promises';
import { createTable, pool } from './adapter.mjs';
import { CALLBACK, SCOPE, makeProvider } from './provider.mjs';

const [file, given] = process.argv.slice(2);
const counts = JSON.parse(given);
const AT_ONCE = 50;

await createTable();
const provider = makeProvider(1);
const server = await provider.Client.find('server');
const device = await provider.Client.find('device');

async function many(count, make) {
  const made = [];
  while (made.length < count) {
    const length = Math.min(AT_ONCE, count - made.length);
    made.push(...await Promise.all(Array.from({ length }, make)));
  }
  return made;
}

async function granted() {
  const grant = new provider.Grant({ accountId: 'alice', clientId: 'server' });
  grant.addOIDCScope(SCOPE);
  return { accountId: 'alice', client: server, grantId: await grant.save(), scope: SCOPE };
}

const ofCode = { gty: 'authorization_code', expiresWithSession: false };
const authTime = Math.floor(Date.now() / 1000);

const seed = {
  client_id: 'server',
  client_secret: server.clientSecret,
  device_client_id: 'device',
  scope: 'api',
  access_tokens: await many(counts.access_tokens, async () =>
    new provider.AccessToken({ ...await granted(), ...ofCode }).save()),
  refresh_tokens: await many(counts.refresh_tokens, async () =>
    new provider.RefreshToken({ ...await granted(), ...ofCode, authTime }).save()),
  codes: await many(counts.codes, async () =>
    new provider.AuthorizationCode({
      ...await granted(), redirectUri: CALLBACK, authTime, expiresWithSession: false,
    }).save()),
  device_codes: await many(counts.device_codes, async () =>
    new provider.DeviceCode({
      client: device, params: { client_id: 'device', scope: 'api' }, userCode: crypto.randomUUID(),
    }).save()),
};
await writeFile(file, JSON.stringify(seed));
await pool.end();
