/**
 * A wallet as a page sees it, injected before the page's own script. It behaves like browser extensions: it refuses
 * typed data for another chain, knows only some chains, and may be late. The test process signs, in `walletSign`.
 */
// biome-ignore lint/correctness/noUnusedVariables: this file's text is injected into pages.
function installWallet({ name, account, chainId, known, late, isLegacy, hang, slow, refuse, id }) {
  const calls = []
  let current = chainId
  const fail = (code, message) => Object.assign(new Error(message), { code })
  const provider = {
    async request({ method, params }) {
      calls.push(method)
      if (hang === method) return await new Promise(() => {})
      if (refuse?.[method]) throw fail(refuse[method], 'refused')
      switch (method) {
        case 'eth_requestAccounts':
        case 'eth_accounts':
          return [account]
        case 'eth_chainId':
          return `0x${current.toString(16)}`
        case 'wallet_switchEthereumChain': {
          const wanted = Number.parseInt(params[0].chainId, 16)
          if (!known.includes(wanted)) throw fail(4902, 'Unrecognized chain ID')
          current = wanted
          return null
        }
        case 'wallet_addEthereumChain':
          if (!params[0].rpcUrls?.[0]?.startsWith('http')) throw fail(-32602, 'Expected a node')
          known.push(Number.parseInt(params[0].chainId, 16))
          return null
        case 'eth_call':
          return await window.walletCall(params)
        case 'personal_sign':
          if (params[1] !== account) throw fail(4100, 'Not an account of this wallet')
          return await window.walletSignText(id, params[0])
        case 'eth_signTypedData_v4': {
          const typed = JSON.parse(params[1])
          if (typed.domain.chainId !== current) throw fail(-32603, 'chainId must match the active chainId')
          if (slow)
            await new Promise((resolve) => {
              window.answerWallet = resolve
            })
          return await window.walletSign(id, params[1])
        }
        default:
          throw fail(4200, `The wallet does not know ${method}`)
      }
    },
  }
  window.walletCalls = calls
  if (isLegacy) {
    window.ethereum = provider
    return
  }
  const icon =
    'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"%3E%3Crect width="32" height="32" rx="8" fill="%23e2761b"/%3E%3Cpath d="M8 22 16 8l8 14z" fill="%23fff"/%3E%3C/svg%3E'
  const info = Object.freeze({
    uuid: crypto.randomUUID?.() ?? String(Math.random()),
    name,
    icon,
    rdns: 'example.wallet',
  })
  const announce = () =>
    window.dispatchEvent(
      new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }),
    )
  window.announceWallet = announce
  if (late) return
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
}
