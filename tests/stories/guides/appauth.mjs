// An application that uses AppAuth in JavaScript. Its second run gets the code that the browser
// returned with.

import { registerHooks } from 'node:module'

// The package is for bundlers, which find files without their extension.
registerHooks({
  resolve: (specifier, context, next) => {
    const isWithoutEnding = specifier.startsWith('.') && !specifier.endsWith('.js')
    return next(isWithoutEnding ? `${specifier}.js` : specifier, context)
  },
})
const {
  AuthorizationRequest,
  AuthorizationServiceConfiguration,
  BaseTokenRequestHandler,
  TokenRequest,
} = await import('@openid/appauth')
const { NodeBasedHandler, NodeCrypto, NodeRequestor } = await import(
  '@openid/appauth/built/src/node_support/index.js'
)

const { issuer, clientId, redirectUri, scope, asked, code } = JSON.parse(process.argv[2])
// The library logs its actions.
console.log = () => {}

const requestor = new NodeRequestor()
const configuration = await AuthorizationServiceConfiguration.fetchFromIssuer(issuer, requestor)

const ask = async () => {
  const request = new AuthorizationRequest(
    {
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      response_type: AuthorizationRequest.RESPONSE_TYPE_CODE,
    },
    new NodeCrypto(),
  )
  // This also creates the verifier.
  const written = await request.toJson()
  return { url: new NodeBasedHandler().buildRequestUrl(configuration, request), asked: written }
}

const take = async () => {
  const request = new TokenRequest({
    client_id: clientId,
    redirect_uri: redirectUri,
    grant_type: 'authorization_code',
    code,
    extras: asked.internal,
  })
  const handler = new BaseTokenRequestHandler(requestor)
  return (await handler.performTokenRequest(configuration, request)).toJson()
}

process.stdout.write(JSON.stringify(await (asked ? take() : ask())))
