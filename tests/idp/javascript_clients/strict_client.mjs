// The whole flow as oauth4webapi sees it: it refuses every answer that is not as the specifications have it.
import * as oauth from 'oauth4webapi'

const { ISSUER, RESOURCE, SERVER_ID, SERVER_SECRET, USER_PASSWORD } = process.env
const local = { [oauth.allowInsecureRequests]: true }
const callback = 'http://127.0.0.1:9/callback'
const checks = []
const check = (name, holds) => {
  if (!holds) throw new Error(`does not hold: ${name}`)
  checks.push(name)
}
const refusal = async (name, code, promise) => {
  try {
    await promise
  } catch (error) {
    const said = error.error ?? error.cause?.[0]?.parameters?.error // The latter when it comes as a challenge.
    check(`${name}: ${said} rather than ${code}`, said === code)
    return
  }
  throw new Error(`not refused: ${name}`)
}

const jar = new Map()
async function browse(url, form) {
  const headers = { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') }
  const body = form && new URLSearchParams(form)
  const answer = await fetch(url, { method: form ? 'POST' : 'GET', headers, body, redirect: 'manual' })
  for (const line of answer.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
    jar.set(name, value)
  }
  return answer
}
function form(page) {
  const fields = {}
  const first = page.slice(page.indexOf('<form'), page.indexOf('</form>'))
  for (const [, name, value] of first.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g))
    fields[name] = value.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&#34;', '"')
  return [/action="([^"]+)"/.exec(first)[1], fields]
}
async function allow(url) {
  let answer = await browse(url)
  let page = await answer.text()
  if (page.includes('type="password"')) {
    const [action, fields] = form(page)
    answer = await browse(action, { ...fields, user: 'ada', password: USER_PASSWORD })
    answer = await browse(answer.headers.get('location'))
    page = await answer.text()
  }
  if (answer.status === 200) {
    const [action, fields] = form(page)
    answer = await browse(action, { ...fields, decision: 'allow' })
  }
  return new URL(answer.headers.get('location'))
}

const issuer = new URL(ISSUER)
for (const algorithm of ['oidc', 'oauth2'])
  await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm, ...local }))
const as = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...local }),
)
check('discovery, both ways', as.code_challenge_methods_supported.includes('S256'))

async function register(metadata) {
  const answer = await oauth.dynamicClientRegistrationRequest(
    as,
    { redirect_uris: [callback], client_name: 'Strict', grant_types: ['authorization_code', 'refresh_token'], ...metadata },
    local,
  )
  return oauth.processDynamicClientRegistrationResponse(answer)
}
const open = await register({ token_endpoint_auth_method: 'none' })
check('registration of a public client', open.client_id && !open.client_secret)
const closed = await register({ token_endpoint_auth_method: 'client_secret_basic' })
check('registration of a confidential client', closed.client_secret)

async function code(client, more) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const url = new URL(as.authorization_endpoint)
  const query = {
    client_id: client.client_id,
    redirect_uri: callback,
    response_type: 'code',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    ...more,
  }
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value)
  const parameters = oauth.validateAuthResponse(as, client, await allow(url), state)
  return { parameters, verifier }
}
async function exchange(client, auth, got, more = {}) {
  const answer = await oauth.authorizationCodeGrantRequest(
    as, client, auth, got.parameters, callback, got.verifier, { additionalParameters: more, ...local },
  )
  return answer
}

// A public client, a resource, and an ID token.
const nonce = oauth.generateRandomNonce()
let got = await code(open, { scope: 'openid strict:read', resource: RESOURCE, nonce })
let answer = await exchange(open, oauth.None(), got, { resource: RESOURCE })
let tokens = await oauth.processAuthorizationCodeResponse(as, open, answer, {
  expectedNonce: nonce,
  maxAge: 3600,
  requireIdToken: true,
})
check('code with PKCE, iss, state, nonce', tokens.access_token && tokens.refresh_token)
await oauth.validateApplicationLevelSignature(as, answer, local)
check('the signature of the ID token', true)

const request = new Request(RESOURCE, { headers: { authorization: `Bearer ${tokens.access_token}` } })
const claims = await oauth.validateJwtAccessToken(as, request, RESOURCE, local)
check('the access token as RFC 9068 has it', claims.client_id === open.client_id && claims.scope === 'openid strict:read')

const subject = oauth.getValidatedIdTokenClaims(tokens).sub
const info = await oauth.processUserInfoResponse(
  as, open, subject, await oauth.userInfoRequest(as, open, tokens.access_token, local),
)
check('userinfo', info.sub === subject)

const server = { client_id: SERVER_ID }
const introspect = async (token) =>
  oauth.processIntrospectionResponse(
    as, server, await oauth.introspectionRequest(as, server, oauth.ClientSecretBasic(SERVER_SECRET), token, local),
  )
check('introspection', (await introspect(tokens.access_token)).active)

// Refresh.
const refresh = async (token) =>
  oauth.processRefreshTokenResponse(
    as, open, await oauth.refreshTokenGrantRequest(as, open, oauth.None(), token, local),
  )
const second = await refresh(tokens.refresh_token)
check('rotation', second.refresh_token && second.refresh_token !== tokens.refresh_token)

// Replay of the code takes everything with it.
await refusal('replay of the code', 'invalid_grant', exchange(open, oauth.None(), got).then((one) =>
  oauth.processAuthorizationCodeResponse(as, open, one)))
check('the replay ends the access token', !(await introspect(second.access_token)).active)
await refusal('the replay ends the refresh token', 'invalid_grant', refresh(second.refresh_token))

// Revocation.
got = await code(open, { scope: 'strict:read', resource: RESOURCE })
tokens = await oauth.processAuthorizationCodeResponse(as, open, await exchange(open, oauth.None(), got))
await oauth.processRevocationResponse(
  await oauth.revocationRequest(as, open, oauth.None(), tokens.refresh_token, local),
)
check('revocation', !(await introspect(tokens.access_token)).active)

// A confidential client, in both ways.
for (const auth of [oauth.ClientSecretBasic(closed.client_secret), oauth.ClientSecretPost(closed.client_secret)]) {
  got = await code(closed, { scope: 'strict:write', resource: RESOURCE })
  tokens = await oauth.processAuthorizationCodeResponse(as, closed, await exchange(closed, auth, got))
  check('a confidential client', tokens.scope === 'strict:write')
}
got = await code(closed, { scope: 'strict:write', resource: RESOURCE })
await refusal('a wrong secret', 'invalid_client', exchange(closed, oauth.ClientSecretPost('wrong'), got).then((one) =>
  oauth.processAuthorizationCodeResponse(as, closed, one)))
await refusal('no secret', 'invalid_client', exchange(closed, oauth.None(), got).then((one) =>
  oauth.processAuthorizationCodeResponse(as, closed, one)))
await refusal('a wrong verifier', 'invalid_grant',
  exchange(closed, oauth.ClientSecretPost(closed.client_secret), { ...got, verifier: oauth.generateRandomCodeVerifier() })
    .then((one) => oauth.processAuthorizationCodeResponse(as, closed, one)))
await refusal('another resource', 'invalid_target',
  exchange(closed, oauth.ClientSecretPost(closed.client_secret), got, { resource: 'https://x.example' })
    .then((one) => oauth.processAuthorizationCodeResponse(as, closed, one)))

// Errors that go through the browser, each with the issuer's name, which the library checks.
for (const [name, error, more] of [
  ['without PKCE', 'invalid_request', { code_challenge: '', code_challenge_method: '' }],
  ['plain PKCE', 'invalid_request', { code_challenge_method: 'plain' }],
  ['an unknown scope', 'invalid_scope', { scope: 'root' }],
  ['an unknown resource', 'invalid_target', { resource: 'https://x.example' }],
]) await refusal(name, error, code(open, { scope: 'strict:read', resource: RESOURCE, ...more }))

console.log(JSON.stringify(checks))
