// Another provider that nobody here wrote, set up to be asked what ours is asked.
// RESOURCES: scopes and form of the tokens of each, by its URL. KEYS: its keys, the one that signs first; else a new one.
import { randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { errors, Provider } from 'oidc-provider'

const { PORT, SERVER_ID, SERVER_SECRET, KEYS } = process.env
const resources = JSON.parse(process.env.RESOURCES)
async function newKeys() {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'one' }]
}
const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  clients: [{
    client_id: SERVER_ID, client_secret: SERVER_SECRET, redirect_uris: [], response_types: [], grant_types: [],
    id_token_signed_response_alg: 'ES256',
  }],
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  jwks: { keys: KEYS ? JSON.parse(KEYS) : await newKeys() },
  pkce: { required: () => true },
  scopes: [...new Set(['openid', 'offline_access', ...Object.values(resources).flatMap(({ scope }) => scope.split(' '))])],
  features: {
    devInteractions: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo(_ctx, url) {
        if (!resources[url]) throw new errors.InvalidTarget()
        const { scope, form } = resources[url]
        return { scope, audience: url, accessTokenFormat: form, jwt: { sign: { alg: 'ES256' } } }
      },
    },
  },
})
provider.listen(Number(PORT), '127.0.0.1', () => console.log('listening'))
