// A JavaScript application that uses openid-client.
//
// Its input are lines of JSON with commands: {"do": name, …}. Its output are lines with results:
// {"done": result} or {"error": {…}}. In between, {"heard": …} is an error of the token endpoint
// that the library handles itself.

import { createInterface } from 'node:readline'

import * as client from 'openid-client'

let config
let asked
let tokens
let device
// With a DPoP handle in it, the library proves its key for all requests that support it.
let options = {}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

// This only watches the responses; the library does not use it.
const watchedFetch = async (url, options) => {
  const response = await fetch(url, options)
  if (String(url).endsWith('/oauth/token') && !response.ok) {
    say({ heard: (await response.clone().json()).error })
  }
  return response
}

const methods = {
  client_secret_basic: client.ClientSecretBasic,
  client_secret_post: client.ClientSecretPost,
  none: client.None,
  // The secret is the private key as a JWK.
  private_key_jwt: client.PrivateKeyJwt,
}

const credential = async (method, given) => {
  if (method !== 'private_key_jwt') return given
  const { kid, ...jwk } = JSON.parse(given)
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' }
  return { kid, key: await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']) }
}

const kept = (answer) => {
  tokens = answer
  return { ...answer, claims: answer.claims() }
}

const actions = {
  async discover({ issuer, client_id, client_secret, method, algorithm }) {
    config = await client.discovery(
      new URL(issuer),
      client_id,
      undefined,
      methods[method](await credential(method, client_secret)),
      { algorithm, execute: [client.allowInsecureRequests], [client.customFetch]: watchedFetch },
    )
    return config.serverMetadata()
  },

  async authorize({ redirect_uri, scope }) {
    const pkceCodeVerifier = client.randomPKCECodeVerifier()
    asked = {
      pkceCodeVerifier,
      expectedState: client.randomState(),
      expectedNonce: client.randomNonce(),
      maxAge: 3600,
    }
    return client.buildAuthorizationUrl(config, {
      redirect_uri,
      scope,
      state: asked.expectedState,
      nonce: asked.expectedNonce,
      max_age: '3600',
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    })
  },

  // All later tokens are bound to a new key.
  async prove() {
    options = { DPoP: client.getDPoPHandle(config, await client.randomDPoPKeyPair()) }
    return null
  },

  async push({ redirect_uri, scope }) {
    const pkceCodeVerifier = client.randomPKCECodeVerifier()
    asked = { pkceCodeVerifier, expectedState: client.randomState() }
    return client.buildAuthorizationUrlWithPAR(
      config,
      {
        redirect_uri,
        scope,
        state: asked.expectedState,
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      },
      options,
    )
  },

  async take({ address }) {
    const checked = client.authorizationCodeGrant(config, new URL(address), asked, undefined, options)
    return kept(await checked)
  },

  async work({ scope }) {
    tokens = await client.clientCredentialsGrant(config, { scope }, options)
    return tokens
  },

  async refresh() {
    return kept(await client.refreshTokenGrant(config, tokens.refresh_token, undefined, options))
  },

  async userinfo() {
    return client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, options)
  },

  async call({ address }) {
    const { access_token } = tokens
    const url = new URL(address)
    const response = await client.fetchProtectedResource(
      config,
      access_token,
      url,
      'GET',
      undefined,
      undefined,
      options,
    )
    return response.json()
  },

  async introspect() {
    return client.tokenIntrospection(config, tokens.access_token)
  },

  async revoke() {
    await client.tokenRevocation(config, tokens.access_token)
    return null
  },

  async leave({ post_logout_redirect_uri }) {
    return client.buildEndSessionUrl(config, {
      post_logout_redirect_uri,
      id_token_hint: tokens.id_token,
    })
  },

  async begin({ scope }) {
    device = await client.initiateDeviceAuthorization(config, { scope })
    return device
  },

  // To save time, the library gets a shorter interval than the server sent.
  async wait({ interval }) {
    return kept(await client.pollDeviceAuthorizationGrant(config, { ...device, interval }))
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...given } = JSON.parse(line)
  try {
    say({ done: await actions[name](given) })
  } catch (error) {
    const { message, code } = error
    const cause = error.error ?? error.cause?.error ?? null
    say({ error: { message, code, cause } })
  }
}
