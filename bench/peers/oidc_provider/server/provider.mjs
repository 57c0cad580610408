// oidc-provider with an application for users, one for devices, and storage in Postgres.
import Provider from 'oidc-provider';
import { PostgresAdapter } from './adapter.mjs';

export const CALLBACK = 'https://client.example/callback';
export const SCOPE = 'api offline_access';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const DAY = 24 * 60 * 60;

export function makeProvider(port) {
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    adapter: PostgresAdapter,
    clients: [
      {
        client_id: 'server',
        client_secret: 'a-secret-of-the-benchmark-which-is-long-enough',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [CALLBACK],
      },
      {
        client_id: 'device',
        token_endpoint_auth_method: 'none',
        grant_types: [DEVICE_GRANT, 'refresh_token'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ['openid', 'offline_access', 'api'],
    features: {
      devInteractions: { enabled: false },
      deviceFlow: { enabled: true },
      introspection: { enabled: true },
    },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    pkce: { required: () => false },
    rotateRefreshToken: true,
    cookies: { keys: ['of a benchmark that is thrown away'] },
    ttl: { AccessToken: DAY, AuthorizationCode: DAY, DeviceCode: DAY, Grant: DAY, RefreshToken: DAY },
  });
  provider.on('server_error', (_context, error) => console.error(error));
  return provider;
}
