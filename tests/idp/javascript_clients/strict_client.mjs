// The whole flow as oauth4webapi sees it, which refuses every answer that is not as the specifications have it.
// Prints what was found: a list of [what was looked at, null or what is wrong with it].
import * as oauth from 'oauth4webapi'

const { ISSUER, RESOURCE, SERVER_ID, SERVER_SECRET, USER_PASSWORD } = process.env
const local = { [oauth.allowInsecureRequests]: true }
const callback = 'http://127.0.0.1:9/callback'
const findings = []

const hold = (holds, otherwise = 'it does not hold') => {
  if (!holds) throw new Error(otherwise)
}
const said = (error) => error.error ?? error.cause?.[0]?.parameters?.error ?? error.message // The second is a challenge's.
async function check(name, look) {
  try {
    await look()
    findings.push([name, null])
  } catch (error) {
    findings.push([name, String(said(error))])
  }
}
async function refused(code, promise) {
  let error
  try {
    await promise
  } catch (caught) {
    error = caught
  }
  hold(error, 'it was not refused')
  hold(said(error) === code, `${said(error)} rather than ${code}`)
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
  for (const [, name] of first.matchAll(/type="(?:text|password)"[^>]* name="([^"]+)"/g))
    fields[name] = name === 'password' ? USER_PASSWORD : 'ada'
  return [/action="([^"]+)"/.exec(first)[1], { ...fields, decision: 'allow' }]
}
// Sign in and allow whatever is asked, until the browser is sent back to the client.
async function allow(start) {
  let url = new URL(start)
  let answer = await browse(url)
  for (let steps = 0; steps < 12; steps++) {
    const location = answer.headers.get('location')
    if (location?.startsWith(callback)) return new URL(location)
    if (location) {
      url = new URL(location, url)
      answer = await browse(url)
      continue
    }
    const page = await answer.text()
    hold(answer.status === 200 && page.includes('<form'), `a page with status ${answer.status}: ${page.slice(0, 300)}`)
    const [action, fields] = form(page)
    url = new URL(action, url)
    answer = await browse(url, fields)
  }
  throw new Error('it never leads back')
}

const issuer = new URL(ISSUER)
const discover = async (algorithm) =>
  oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm, ...local }))
const as = await discover('oidc')
await check('RFC 8414: metadata', async () => hold((await discover('oauth2')).issuer === as.issuer))
await check('RFC 7636: S256 is promised, and nothing else', () =>
  hold(String(as.code_challenge_methods_supported) === 'S256'))

const register = async (metadata) =>
  oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(
      as,
      {
        redirect_uris: [callback], client_name: 'Strict', application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'], ...metadata,
      },
      local,
    ),
  )
let open, closed
await check('RFC 7591: a public client', async () => {
  open = await register({ token_endpoint_auth_method: 'none' })
  hold(open.client_id && !open.client_secret)
})
await check('RFC 7591: a client with a secret', async () => {
  closed = await register({ token_endpoint_auth_method: 'client_secret_basic' })
  hold(closed.client_secret)
})
await check('RFC 7591: a redirect that is refused', () =>
  refused('invalid_redirect_uri', register({ redirect_uris: ['http://10.0.0.5/cb'] })))

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
const exchange = (client, auth, got, more = {}) =>
  oauth.authorizationCodeGrantRequest(as, client, auth, got.parameters, callback, got.verifier, {
    additionalParameters: more,
    ...local,
  })
const tokensOf = async (client, auth, got, more = {}) =>
  oauth.processAuthorizationCodeResponse(as, client, await exchange(client, auth, got, more))
const reading = { scope: 'strict:read offline_access', prompt: 'consent', resource: RESOURCE }
const named = { resource: RESOURCE }

// A public client, a resource, and an ID token.
const nonce = oauth.generateRandomNonce()
let got, tokens, answer
await check('RFC 9207, RFC 7636: a code', async () => {
  got = await code(open, { ...reading, scope: 'openid strict:read offline_access', nonce })
})
await check('OpenID Connect: an ID token', async () => {
  answer = await exchange(open, oauth.None(), got, named)
  tokens = await oauth.processAuthorizationCodeResponse(as, open, answer, {
    expectedNonce: nonce,
    requireIdToken: true,
  })
})
await check('OpenID Connect: the signature of the ID token', () =>
  oauth.validateApplicationLevelSignature(as, answer, local))
await check('RFC 9068: the access token', async () => {
  const request = new Request(RESOURCE, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  const claims = await oauth.validateJwtAccessToken(as, request, RESOURCE, local)
  hold(claims.client_id === open.client_id && claims.scope.split(' ').includes('strict:read'))
})
await check('RFC 6749: a client with no secret has a refresh token', () => hold(tokens.refresh_token))
await check('OpenID Connect: userinfo', async () => {
  const own = await tokensOf(open, oauth.None(), await code(open, { scope: 'openid' }))
  const subject = oauth.getValidatedIdTokenClaims(own).sub
  const info = await oauth.userInfoRequest(as, open, own.access_token, local)
  hold((await oauth.processUserInfoResponse(as, open, subject, info)).sub === subject)
})

const server = { client_id: SERVER_ID }
const isActive = async (token) =>
  (
    await oauth.processIntrospectionResponse(
      as,
      server,
      await oauth.introspectionRequest(as, server, oauth.ClientSecretBasic(SERVER_SECRET), token, local),
    )
  ).active
await check('RFC 7662: introspection', async () => hold(await isActive(tokens.access_token)))
await check('RFC 7662: a token that is none', async () => hold((await isActive('nonsense')) === false))

// Refresh.
const refresh = async (token, more = {}) =>
  oauth.processRefreshTokenResponse(
    as,
    open,
    await oauth.refreshTokenGrantRequest(as, open, oauth.None(), token, { additionalParameters: more, ...local }),
  )
let second
await check('OAuth 2.1: rotation', async () => {
  second = await refresh(tokens.refresh_token, named)
  hold(second.refresh_token && second.refresh_token !== tokens.refresh_token)
})
await check('RFC 8707: a refresh for another resource', () =>
  refused('invalid_target', refresh(second.refresh_token, { resource: 'https://x.example' })))
await check('OAuth 2.1: a lost answer is given again', async () => {
  const again = await refresh(tokens.refresh_token, named)
  hold(again.refresh_token === second.refresh_token)
})

// Replay of the code takes everything with it.
await check('RFC 6749: replay of the code', () => refused('invalid_grant', tokensOf(open, oauth.None(), got, named)))
await check('RFC 9700: the replay ends the access token', async () => hold(!(await isActive(second.access_token))))
await check('RFC 9700: the replay ends the refresh token', () =>
  refused('invalid_grant', refresh(second.refresh_token, named)))

await check('RFC 7009: revocation ends the family', async () => {
  const one = await tokensOf(open, oauth.None(), await code(open, reading), named)
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(as, open, oauth.None(), one.refresh_token, local),
  )
  hold(!(await isActive(one.access_token)))
  await refused('invalid_grant', refresh(one.refresh_token, named))
})

// A confidential client.
const writing = { scope: 'strict:write', resource: RESOURCE }
await check('RFC 6749: a secret in the header', async () => {
  const auth = oauth.ClientSecretBasic(closed.client_secret)
  hold((await tokensOf(closed, auth, await code(closed, writing), named)).scope === 'strict:write')
})
await check('RFC 6749: a secret in the form, of a client that said header', async () => {
  const auth = oauth.ClientSecretPost(closed.client_secret)
  hold((await tokensOf(closed, auth, await code(closed, writing), named)).scope === 'strict:write')
})
const basic = () => oauth.ClientSecretBasic(closed.client_secret)
await check('RFC 6749: a wrong secret', async () =>
  refused('invalid_client', tokensOf(closed, oauth.ClientSecretBasic('wrong'), await code(closed, writing))))
await check('RFC 6749: no secret', async () =>
  refused('invalid_client', tokensOf(closed, oauth.None(), await code(closed, writing))))
await check('RFC 7636: a wrong verifier', async () => {
  const one = await code(closed, writing)
  await refused('invalid_grant', tokensOf(closed, basic(), { ...one, verifier: oauth.generateRandomCodeVerifier() }))
})
await check('RFC 8707: another resource at the token endpoint', async () =>
  refused('invalid_target', tokensOf(closed, basic(), await code(closed, writing), { resource: 'https://x.example' })))

// Errors that go through the browser, each with the issuer's name, which the library checks.
for (const [name, error, more] of [
  ['RFC 7636: no challenge', 'invalid_request', { code_challenge: '', code_challenge_method: '' }],
  ['RFC 7636: a plain challenge', 'invalid_request', { code_challenge_method: 'plain' }],
  ['RFC 6749: an unknown scope', 'invalid_scope', { scope: 'root' }],
  ['RFC 8707: an unknown resource', 'invalid_target', { resource: 'https://x.example' }],
  ['OpenID Connect: a prompt that is none', 'invalid_request', { prompt: 'none login' }],
  ['RFC 6749: an unknown response type', 'unsupported_response_type', { response_type: 'token' }],
]) await check(name, () => refused(error, code(open, { scope: 'strict:read', resource: RESOURCE, ...more })))

console.log(JSON.stringify(findings))
