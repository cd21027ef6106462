import type { Language } from './language.ts'

export const spanish: Language = {
  tag: 'es',
  direction: 'ltr',
  name: 'Español',
  texts: {
    title: 'Pagar {amount} a {store}',
    payStore: 'Pagar a {store}',
    amountDue: 'Importe',
    order: 'Pedido',
    payTo: 'Se paga a',
    network: 'Red',
    validUntil: 'Válido hasta',
    direct: 'El dinero va directamente a la cartera de la tienda. Usted no paga comisión de red.',
    testMode: 'Prueba: sin dinero real',
    help: '¿Preguntas? Consulte a la tienda e indique {checkout}.',
    languages: 'Idiomas',

    walletTitle: 'Pagar con su cartera',
    walletAbout: 'Una sola firma. Sin gas ni comisión de red.',
    payWith: 'Pagar con {wallet}',
    unnamedWallet: 'la cartera del navegador',
    noWallet: 'No hay ninguna cartera en este navegador. Use su teléfono o envíe el pago usted mismo.',
    needsScript:
      'Su navegador no ejecuta JavaScript, por lo que no se puede consultar su cartera. Use una aplicación de cartera en su teléfono o envíe el pago usted mismo.',

    phoneTitle: 'Pagar con el teléfono',
    phoneAbout: 'Escanee con la cámara. Esta página se abre allí y paga con la cartera de su teléfono.',
    appsTitle: 'Abrir en una aplicación de cartera',
    qrPage: 'Código QR de la dirección de esta página',
    qrAddress: 'Código QR de la dirección de envío',
    qrPayment: 'Código QR que abre este pago en una cartera',

    sendTitle: 'Enviarlo usted mismo',
    sendAbout:
      'Para plataformas de intercambio y carteras que no pueden firmar este pago. Recibe una dirección y un importe exacto reservado para usted. Su cartera o plataforma cobra su propia comisión.',
    sendButton: 'Mostrar dirección e importe',
    sendNetwork: 'Red',
    sendExact: 'Envíe exactamente este importe. Las últimas cifras indican a la tienda que es suyo.',
    sendLinked:
      'Escanee el código o abra el enlace en una cartera de esta red. Lleva una marca que identifica el pago como suyo: enviado de otro modo, no se encuentra.',
    sendLink: 'Abrir en una cartera',
    sendAmount: 'Importe exacto',
    sendAddress: 'Dirección',
    sendWarning: 'Envíe solo {asset} en {network}. Otro token u otra red no llega y puede perderse.',
    sendFee:
      'Si su plataforma descuenta su comisión del importe, súmela: debe llegar exactamente esta cantidad.',
    sendCheck: 'Compruebe la dirección entera después de pegarla, también la parte central.',
    hashTitle: '¿Lo ha enviado y no pasa nada?',
    hashLabel: 'Hash de la transacción',
    hashButton: 'Buscarla',
    copy: 'Copiar',
    copied: 'Copiado',

    states: {
      connecting: { title: 'Conectando', text: 'Permita la conexión en su cartera.' },
      switching: {
        title: 'Red incorrecta',
        text: 'Su cartera está en otra red. Permita el cambio a {network} en su cartera.',
      },
      signing: { title: 'Firme en su cartera', text: 'Compare el importe y la dirección, y firme.' },
      settling: {
        title: 'Liquidando su pago',
        text: 'Tarda unos segundos. No hay que firmar nada más.',
      },
      rejected: {
        title: 'No se ha pagado nada',
        text: 'Lo ha rechazado en su cartera. Puede intentarlo de nuevo.',
      },
      pending: {
        title: 'Su cartera está esperando',
        text: 'Ya hay una solicitud abierta en su cartera. Ábrala, respóndala e inténtelo de nuevo.',
      },
      funds: {
        title: 'No hay suficiente {asset}',
        text: 'Esta cuenta tiene menos de {amount} {asset} en {network}. Añada fondos o elija otra cuenta. No se ha pagado nada.',
      },
      smart: {
        title: 'Su cartera no puede firmar este pago',
        text: 'Su modo de cuenta inteligente no lo admite. No se ha pagado nada. Envíelo como transferencia normal: vea más abajo.',
      },
      chain: {
        title: 'Su cartera no está en {network}',
        text: 'Cambie a {network} en su cartera e inténtelo de nuevo. No se ha pagado nada.',
      },
      tab: {
        title: 'Abierto en otra pestaña',
        text: 'Este pago se está haciendo en otra pestaña o ventana. Continúe allí.',
      },
      changed: {
        title: 'Esta página ha cambiado',
        text: 'No se ha pagado nada. Vuelva a cargar la página antes de pagar.',
      },
      offline: {
        title: 'Sin conexión',
        text: 'Su pago está firmado y guardado. Se enviará en cuanto vuelva a tener conexión. No pague otra vez.',
      },
      unavailable: {
        title: 'Un momento',
        text: 'Su pago está firmado y guardado. El servicio está ocupado y el pago se reenvía solo. No pague otra vez.',
      },
      failed: { title: 'No ha funcionado', text: 'No se ha pagado nada. Puede intentarlo de nuevo.' },
    },
    startOver: 'Empezar de nuevo',
    notices: {
      crowded:
        'Demasiadas personas están enviando importes parecidos. Pague con una cartera o inténtelo más tarde.',
      in_progress: 'Se está liquidando un pago. Espere antes de enviar nada.',
      closed: 'Este pago ya no se puede hacer.',
      unavailable: 'Ahora no es posible. Inténtelo de nuevo en un minuto.',
      looking: 'Estamos buscando esta transacción. Esta página cambia cuando se encuentre.',
      not_found:
        'Esa transacción aún no existe en {network}. Compruebe el hash o inténtelo de nuevo en un minuto.',
      invalid_hash: 'Eso no es un hash de transacción. Empieza por 0x y tiene 66 caracteres.',
      unmatched: 'Se ha encontrado la transacción, pero no es el pago exacto. La tienda ha sido avisada.',
    },
    noteTitle: 'Sobre lo que ha enviado',
    notes: {
      late: 'Han llegado {amount} {asset} fuera de plazo. La tienda ha sido avisada y decide.',
      underpaid:
        'Han llegado {amount} {asset}, menos de lo debido. La tienda ha sido avisada. No envíe el resto por su cuenta: pregunte a la tienda.',
      overpaid:
        'Han llegado {amount} {asset}, más de lo debido. La tienda ha sido avisada. Pídale la diferencia.',
      unmatched:
        'Han llegado {amount} {asset}, pero no el importe exacto. La tienda ha sido avisada y decide.',
    },

    processing: {
      title: 'Su pago se está liquidando',
      text: 'Está en camino. Puede cerrar esta página: terminará igualmente. No pague otra vez.',
    },
    completed: { title: 'Pago recibido', text: 'Gracias. {store} ha cobrado.' },
    expired: {
      title: 'Este pago ha caducado',
      text: 'El plazo para pagar ha terminado. Vuelva a la tienda para pedir de nuevo.',
    },
    canceled: {
      title: 'Este pago se ha cancelado',
      text: 'La tienda lo ha retirado. Aquí ya no se puede pagar nada.',
    },
    notFound: {
      title: 'No existe ese pago',
      text: 'Compruebe la dirección o pida a la tienda un enlace nuevo.',
    },
    unavailable: {
      title: 'Esta página no se puede mostrar ahora',
      text: 'Es un fallo nuestro. No se ha perdido nada: vuelva a cargarla en un minuto. Si ya ha pagado, no pague otra vez.',
    },

    transaction: 'Transacción',
    from: 'De',
    amount: 'Importe',
    checkout: 'Referencia',
    receipt: 'Recibo',
    returnTo: 'Volver a {host}',
    leaving: 'Será dirigido allí en {seconds} s.',
    stay: 'Quedarme aquí',
    checkAgain: 'Comprobar de nuevo',
  },
}
