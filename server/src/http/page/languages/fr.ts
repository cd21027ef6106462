import type { Language } from './language.ts'

export const french: Language = {
  tag: 'fr',
  direction: 'ltr',
  name: 'Français',
  texts: {
    title: 'Payer {amount} à {store}',
    payStore: 'Payer {store}',
    amountDue: 'Montant à payer',
    amountExpected: 'Montant attendu',
    amountPaid: 'Montant payé',
    amount: 'Montant',
    price: 'Prix',
    rate: 'Taux de change',
    onNetwork: 'sur {network}',
    order: 'Commande',
    description: 'Description',
    payTo: 'Payer à',
    paidTo: 'Payé à',
    network: 'Réseau',
    validUntil: 'À payer avant le',
    usdc: 'L’USDC est un dollar numérique : un USDC vaut un dollar américain.',
    direct: 'Votre argent va directement dans le portefeuille de la boutique.',
    testMode: 'Test : pas d’argent réel',
    help: 'Des questions ? Contactez la boutique en indiquant {checkout}.',
    languages: 'Langues',

    chooseWay: 'Comment souhaitez-vous payer ?',
    ways: {
      wallet: 'Portefeuille du navigateur',
      phone: 'Téléphone',
      app: 'Application portefeuille',
      send: 'Plateforme ou autre portefeuille',
    },

    walletTitle: 'Payer avec un portefeuille de ce navigateur',
    walletAbout: 'Vous signez une seule fois dans votre portefeuille. Vous ne payez pas de frais de réseau.',
    payWith: 'Payer avec {wallet}',
    unnamedWallet: 'le portefeuille du navigateur',
    noWallet: 'Nous n’avons trouvé aucun portefeuille dans ce navigateur.',
    unsignable: 'Ce paiement ne peut pas être signé avec un portefeuille sur {network} pour le moment.',
    usePhone: 'Utiliser votre téléphone',
    needsScript:
      'Pour payer avec un portefeuille de ce navigateur, il faut JavaScript, qui est désactivé ici.',

    phoneTitle: 'Payer avec votre téléphone',
    phoneAbout:
      'Scannez ce code avec l’appareil photo de votre téléphone. Cette page s’y ouvre et vous payez avec le portefeuille de votre téléphone. Vous ne payez pas de frais de réseau.',
    appsTitle: 'Payer avec une application portefeuille',
    appsAbout:
      'Touchez votre portefeuille. Cette page s’y ouvre et vous y signez une seule fois. Vous ne payez pas de frais de réseau.',
    qrPage: 'Code QR qui ouvre cette page',
    qrAddress: 'Code QR de l’adresse d’envoi',
    qrPayment: 'Code QR qui ouvre ce paiement dans un portefeuille',

    sendTitle: 'Payer depuis une plateforme ou un autre portefeuille',
    sendAbout:
      'Nous vous réservons un montant exact et vous montrons l’adresse à laquelle l’envoyer. Ce montant peut dépasser le prix d’une fraction de centime : c’est ainsi que la boutique reconnaît votre paiement. Votre plateforme ou portefeuille peut prélever ses propres frais.',
    sendButton: 'Afficher le montant et l’adresse',
    sendNetwork: 'Sur quel réseau l’enverrez-vous ?',
    sendOther: 'Utiliser un autre réseau',
    sendDo: 'Envoyez exactement ce montant à cette adresse',
    sendExact: 'Envoyez tous les chiffres. Ils indiquent à la boutique que ce paiement est le vôtre.',
    sendLinked:
      'Payez avec un portefeuille sur ce réseau, au moyen de ce code ou de ce lien. Un virement fait autrement, par exemple depuis une plateforme, ne peut pas être rattaché à votre commande.',
    sendLink: 'Ouvrir dans un portefeuille',
    sendAmount: 'Montant exact',
    sendAddress: 'Adresse',
    sendWarning: 'Envoyez uniquement {asset}, et uniquement sur {network}. Tout autre envoi peut être perdu.',
    sendFee:
      'Si votre plateforme prélève ses frais sur le montant, ajoutez-les : c’est exactement ce montant qui doit arriver.',
    sendCheck: 'Après l’avoir collée, vérifiez l’adresse entière, y compris le milieu.',
    sendWatching:
      'Nous guettons votre virement. Vous pouvez fermer cette page : le paiement compte sans elle.',
    sentTitle: 'J’ai déjà envoyé',
    sentAbout:
      'Si vous avez envoyé de l’argent pour ce paiement, n’envoyez rien de plus. Saisissez le hash de la transaction : nous la cherchons et la montrons à la boutique, qui décide de l’accepter ou de renvoyer l’argent.',
    hashTitle: 'Envoyé, mais rien ne se passe ?',
    hashAbout:
      'Si un autre montant est arrivé, nous ne pouvons pas savoir qu’il vient de vous. N’envoyez rien de plus : saisissez le hash de la transaction et la boutique le verra.',
    hashLabel: 'Hash de la transaction',
    hashButton: 'Retrouver mon paiement',
    copy: 'Copier',
    copied: 'Copié',

    account: 'Votre compte',
    balance: 'Solde',
    states: {
      connecting: { title: 'Connexion', text: 'Autorisez la connexion dans votre portefeuille.' },
      switching: {
        title: 'Changement de réseau',
        text: 'Votre portefeuille est sur un autre réseau. Autorisez-le à passer à {network}.',
      },
      signing: {
        title: 'Signez dans votre portefeuille',
        text: 'Vérifiez que votre portefeuille affiche le même montant et la même adresse, puis signez.',
      },
      again: {
        title: 'Signez encore une fois',
        text: 'Sur Solana, une signature vaut environ une demi-minute, et celle-ci est arrivée trop tard. Rien n’a été payé. Votre portefeuille vous le redemande.',
      },
      settling: {
        title: 'Votre paiement est en cours',
        text: 'Cela prend quelques secondes. Vous n’avez rien d’autre à signer.',
      },
      rejected: {
        title: 'Rien n’a été payé',
        text: 'Vous avez refusé la demande dans votre portefeuille. Vous pouvez réessayer.',
      },
      pending: {
        title: 'Votre portefeuille vous attend',
        text: 'Une demande est déjà ouverte dans votre portefeuille. Ouvrez-le, répondez-y, puis réessayez.',
      },
      funds: {
        title: 'Pas assez de {asset}',
        text: 'Ce compte n’a pas {amount} {asset} sur {network}. Approvisionnez-le ou choisissez un autre compte. Rien n’a été payé.',
      },
      smart: {
        title: 'Votre portefeuille ne peut pas signer ce paiement',
        text: 'Il ne prend pas en charge ce type de signature. Rien n’a été payé. Vous pouvez payer par un virement ordinaire : choisissez « Plateforme ou autre portefeuille ».',
      },
      expired: {
        title: 'Le temps pour signer est écoulé',
        text: 'Sur Solana, une signature vaut environ une demi-minute. Rien n’a été payé. Choisissez de nouveau votre portefeuille et signez peu après sa demande.',
      },
      undeployed: {
        title: 'Votre portefeuille intelligent n’est pas encore actif sur {network}',
        text: 'Il devient actif à la première transaction que vous envoyez depuis celui-ci. Rien n’a été payé. Vous pouvez payer par un virement ordinaire, qui active aussi le portefeuille : choisissez « Plateforme ou autre portefeuille ».',
      },
      chain: {
        title: 'Votre portefeuille n’est pas sur {network}',
        text: 'Passez à {network} dans votre portefeuille, puis réessayez. Rien n’a été payé.',
      },
      tab: {
        title: 'Continuez dans l’autre onglet',
        text: 'Ce paiement est ouvert dans un autre onglet ou une autre fenêtre de ce navigateur. Terminez-le là-bas, ou fermez cet onglet et réessayez ici.',
      },
      changed: {
        title: 'Cette page n’est plus à jour',
        text: 'Rien n’a été payé. Rechargez la page avant de payer.',
      },
      offline: {
        title: 'Pas de connexion',
        text: 'Votre paiement signé est conservé ici et partira dès que la connexion sera rétablie. Ne payez pas une seconde fois.',
      },
      unavailable: {
        title: 'Un instant',
        text: 'Le service est occupé. Votre paiement signé est conservé ici et sera renvoyé automatiquement. Ne payez pas une seconde fois.',
      },
      failed: { title: 'Cela n’a pas fonctionné', text: 'Rien n’a été payé. Vous pouvez réessayer.' },
    },
    startOver: 'Recommencer',
    notices: {
      crowded:
        'Trop de personnes envoient un montant semblable en ce moment. Payez avec un portefeuille ou votre téléphone, ou réessayez plus tard.',
      in_progress: 'Un paiement est déjà en cours. N’envoyez rien, s’il vous plaît.',
      closed: 'Ce paiement est clos. N’envoyez rien, s’il vous plaît.',
      unavailable: 'Ce n’est pas possible pour le moment. Réessayez dans une minute.',
      looking: 'Nous cherchons votre transaction. Cette page se mettra à jour quand nous l’aurons trouvée.',
      not_found:
        'Nous ne trouvons pas encore cette transaction sur {network}. Vérifiez le hash ou réessayez dans une minute.',
      invalid_hash: 'Ce n’est pas un hash de transaction. Il commence par 0x et compte 66 caractères.',
      unmatched:
        'Nous avons trouvé votre transaction, mais elle ne correspond pas à ce paiement. Nous l’avons montrée à la boutique, qui décidera. N’envoyez rien de plus.',
    },
    announced: {
      title: 'Nous cherchons votre paiement',
      text: 'Cette page se mettra à jour quand nous aurons trouvé votre transaction. Cela peut prendre quelques minutes, et vous pouvez fermer la page. Si elle ne correspond pas à ce paiement, la boutique décide. Ne payez pas une seconde fois.',
    },
    notSent: 'Je n’ai encore rien envoyé',
    arrived: {
      title: 'La boutique doit examiner votre virement',
      text: 'N’envoyez rien de plus avant d’avoir eu une réponse de la boutique.',
    },
    noteTitle: 'Au sujet de l’argent que vous avez envoyé',
    notes: {
      late: '{amount} {asset} sont arrivés alors que ce paiement était clos. Nous avons prévenu la boutique, qui décidera.',
      underpaid:
        '{amount} {asset} sont arrivés ; {due} {asset} étaient attendus. Nous avons prévenu la boutique, qui décidera.',
      overpaid:
        '{amount} {asset} sont arrivés. Au total, c’est plus que les {due} {asset} attendus. Nous avons prévenu la boutique. Demandez-lui de vous rendre la différence.',
      unmatched:
        '{amount} {asset} sont arrivés, mais n’ont pas pu être rattachés à cette commande. Nous avons prévenu la boutique, qui décidera.',
    },

    refund: 'Remboursement',
    refunds: {
      whole: { title: 'Paiement remboursé', text: '{store} vous a rendu votre paiement.' },
      part: '{store} vous a rendu une partie de votre paiement.',
      arrived: '{amount} {asset} sont arrivés.',
      sent: '{amount} {asset} sont en route vers {address}.',
      named: 'La boutique dit avoir envoyé {amount} {asset} à {address}. Nous cherchons sa transaction.',
      completed: '{amount} {asset} ont été rendus à {address}.',
      declared:
        'La boutique dit avoir rendu {amount} {asset}. Nous ne pouvons pas le voir nous-mêmes : si rien n’est arrivé, demandez à la boutique.',
    },

    processing: {
      title: 'Votre paiement est en route',
      text: 'Vous pouvez fermer cette page : le paiement aboutira sans elle. Ne payez pas une seconde fois.',
    },
    completed: { title: 'Paiement reçu', text: 'Merci ! {store} a bien reçu votre paiement.' },
    expired: {
      title: 'Ce paiement a expiré',
      text: 'Le délai de paiement est écoulé : n’envoyez rien, s’il vous plaît. Si vous voulez toujours commander, retournez à la boutique.',
    },
    canceled: {
      title: 'Ce paiement a été annulé',
      text: 'La boutique l’a annulé : n’envoyez rien, s’il vous plaît.',
    },
    notFound: {
      title: 'Nous ne trouvons pas ce paiement',
      text: 'Vérifiez l’adresse ou demandez un nouveau lien à la boutique.',
    },
    unavailable: {
      title: 'Nous ne pouvons pas afficher cette page',
      text: 'Le problème vient de chez nous et rien n’est perdu. Rechargez la page dans une minute. Si vous avez déjà payé, ne payez pas une seconde fois.',
    },

    receipt: 'Reçu',
    date: 'Date et heure',
    from: 'Payé depuis',
    transaction: 'Transaction',
    checkout: 'Référence du paiement',
    save: 'Enregistrer',
    mailIt: 'Me l’envoyer par e-mail',
    returnTo: 'Retour à {host}',
    leaving: 'Retour à la boutique dans {seconds} s.',
    stay: 'Rester ici',
    checkAgain: 'Vérifier à nouveau',

    buyerReceipt: {
      number: 'Numéro du reçu',
      date: 'Date',
      taxId: 'Numéro fiscal {number}',
      print: 'Imprimer ou enregistrer en PDF',
      back: 'Retour au paiement',
      void: {
        title: 'Ce reçu est annulé',
        text: 'Le réseau a annulé le paiement : ce reçu n’est donc plus valable.',
      },
      waiting: {
        title: 'Votre reçu est en préparation',
        text: 'Il aura son numéro dans un instant. Veuillez vérifier à nouveau.',
      },
      email: 'Votre adresse e-mail',
      emailAbout: 'Nous l’utilisons uniquement pour cet e-mail et ne la conservons pas.',
      send: 'Envoyer',
      said: {
        taken:
          'Si cette adresse n’a reçu aucun reçu de notre part au cours de la dernière heure, l’e-mail est en route.',
        wrong: 'Ce n’est pas une adresse e-mail. Vérifiez-la et réessayez.',
        unavailable:
          'Nous ne pouvons pas envoyer ce reçu par e-mail pour le moment. Imprimez-le ou enregistrez-le.',
      },
      store: 'Boutique',
      open: 'Pour imprimer ou enregistrer votre reçu, ouvrez cette page :',
      ignore:
        'Quelqu’un a saisi votre adresse sur la page de ce paiement. Si ce n’était pas vous, vous pouvez ignorer cet e-mail.',
    },

    link: {
      pay: 'Continuer',
      about: 'Vous choisirez ensuite comment payer.',
      howMuch: 'Combien souhaitez-vous payer ?',
      between: 'Entre {min} et {max}',
      mistake: 'Saisissez un montant entre {min} et {max}, par exemple {example}.',
      outdated:
        'Cette page est restée ouverte un moment, ou la boutique a changé quelque chose. Vérifiez-la, puis continuez.',
      paid: { title: 'C’est payé', text: 'Il n’y a plus rien à payer ici.' },
      closed: { title: 'Ce lien est fermé', text: '{store} l’a fermé. N’envoyez rien.' },
      ended: {
        title: 'Ce lien a expiré',
        text: 'Le délai de paiement est dépassé. N’envoyez rien. Demandez un nouveau lien à {store}.',
      },
      unpayable: {
        title: '{store} ne peut pas être payé pour le moment',
        text: 'Réessayez plus tard ou demandez à la boutique.',
      },
      invoice: 'Facture',
      due: 'Échéance',
      buyer: 'Facturé à',
      line: 'Article',
      quantity: 'Quantité',
      each: 'Prix unitaire',
      taxRate: 'Taxe',
      net: 'Net',
      tax: 'Taxe {rate} %',
      total: 'Total',
    },

    addressRequest: {
      title: 'Remboursement de {store}',
      amount: 'Votre remboursement',
      before: 'Répondez avant le',
      help: 'Des questions ? Contactez la boutique en indiquant {refund}.',
      ask: {
        title: 'Où envoyer votre remboursement ?',
        text: '{store} souhaite vous rendre {amount} {asset}. Saisissez une adresse à vous sur {network}.',
      },
      label: 'Votre adresse {asset} sur {network}',
      hint: 'Dans votre portefeuille ou sur votre plateforme d’échange, choisissez de recevoir des {asset} sur {network} et copiez l’adresse affichée. L’argent envoyé à une mauvaise adresse est perdu.',
      once: 'Vous ne pouvez saisir une adresse qu’une seule fois.',
      button: 'Utiliser cette adresse',
      mistakes: {
        empty: 'Saisissez l’adresse qui doit recevoir votre remboursement.',
        malformed:
          'Ce n’est pas l’adresse d’un portefeuille sur {network}. Copiez l’adresse entière et réessayez.',
        refused:
          'Cette adresse ne peut pas recevoir votre remboursement. Saisissez celle d’un portefeuille à vous.',
        unavailable:
          'Nous n’avons pas pu vérifier l’adresse et rien n’a été enregistré. Réessayez dans une minute.',
      },
      named: {
        title: 'Dernière étape : donnez votre code à la boutique',
        text: 'Communiquez ce code à {store} par votre moyen de contact habituel. Le remboursement part dès qu’il correspond.',
      },
      code: 'Votre code',
      codeHint: 'Donnez-le à la boutique et à personne d’autre.',
      address: 'Votre adresse',
      wrong: 'Mauvaise adresse ? Ne donnez pas le code. Demandez un nouveau lien à la boutique.',
      confirmed: {
        title: 'La boutique a confirmé votre adresse',
        text: 'L’envoi du remboursement est la prochaine étape. Vous pouvez fermer cette page et revenir plus tard.',
      },
      returned: {
        title: 'Votre remboursement a été envoyé',
        text: '{amount} {asset} ont été envoyés à votre adresse.',
      },
      used: {
        title: 'Ce lien a déjà été utilisé',
        text: 'Une adresse a été saisie dans un autre navigateur. Si ce n’était pas vous, prévenez tout de suite {store} et ne confirmez aucun code.',
      },
      expired: { title: 'Ce lien a expiré', text: 'Demandez-en un nouveau à {store}.' },
      canceled: {
        title: 'Ce remboursement ne sera pas versé ici',
        text: 'La boutique l’a annulé ou réglé autrement. Si vous l’attendiez, demandez à {store}.',
      },
      unknown: {
        title: 'Ce lien ne fonctionne pas',
        text: 'Il en manque peut-être une partie, ou la boutique vous en a envoyé un plus récent. Ouvrez le dernier lien, ou demandez à la boutique.',
      },
      elsewhere: {
        title: 'Ouvrez de nouveau votre lien',
        text: 'Ouvrez le lien de la boutique dans ce navigateur. La page a besoin d’un cookie : les cookies doivent être autorisés.',
      },
    },
  },
}
