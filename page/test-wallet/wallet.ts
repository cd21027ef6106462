import { privateKeyToAccount } from 'viem/accounts'

/**
 * A wallet for `dev`: it announces itself like an extension (EIP-6963) and signs whatever it is asked to, without
 * confirmation, with a publicly known key. It is not part of the page: only `dev` builds and serves it.
 */
declare const testKey: `0x${string}`
declare const testChainId: number

const account = privateKeyToAccount(testKey)

const info = {
  uuid: '66617274-6869-4e67-8000-746573740000',
  name: 'Test wallet',
  rdns: 'dev.farthing.test-wallet',
  icon: 'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"%3E%3Crect width="32" height="32" rx="8" fill="%23b45309"/%3E%3Cpath d="M9 9h14v4h-5v11h-4V13H9z" fill="%23fff"/%3E%3C/svg%3E',
}

const provider = {
  async request({ method, params }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
    switch (method) {
      case 'eth_requestAccounts':
      case 'eth_accounts':
        return [account.address]
      case 'eth_chainId':
        return `0x${testChainId.toString(16)}`
      case 'personal_sign':
        return await account.signMessage({ message: { raw: String(params?.[0]) as `0x${string}` } })
      case 'eth_signTypedData_v4': {
        const { EIP712Domain: _, ...types } = JSON.parse(String(params?.[1])).types
        return await account.signTypedData({ ...JSON.parse(String(params?.[1])), types })
      }
      default:
        throw Object.assign(new Error(`The test wallet does not support ${method}.`), { code: 4200 })
    }
  },
}

const announce = () =>
  dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))

addEventListener('eip6963:requestProvider', announce)
announce()
