// An unchanged oidc-provider with its own pages for sign-in and consent, and its storage in memory.
import Provider from 'oidc-provider';

const { port, redirectUri } = JSON.parse(process.argv[2]);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'gatebell',
      client_secret: 'a-secret-of-a-story-that-everybody-knows',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  claims: {
    openid: ['sub', 'groups'],
    email: ['email', 'email_verified'],
    profile: ['name', 'preferred_username'],
  },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      name: 'Dana Scully',
      preferred_username: id,
      email: `${id}@people.example`,
      email_verified: true,
      groups: ['sre'],
    }),
  }),
  issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  cookies: { keys: ['of a story that is thrown away'] },
});
provider.listen(port, '127.0.0.1', () => console.log('ready'));
